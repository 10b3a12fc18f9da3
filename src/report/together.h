// All processes of a program together: how many there were, and the most that they held. What a limit, a comparison or
// a baseline speaks of where there are several.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "verdict/evidence.h"

namespace millpond::report {

/// Not one that only started the main process, a shell or the shim that chooses a Python, and was gone before it began.
bool beside_main(const verdict::Evidence& evidence, const verdict::SeenProcess& process);

/// Those beside the main one, it included; 1 where it was alone, or none is named.
int64_t processes_seen(const verdict::Evidence& evidence);

struct Peak {
  Bytes bytes;
  int64_t processes = 1;
  /// "the peak", "the peak of its 3 processes together"
  std::string name() const;
};
/// Of one process the kernel's high-water mark; of several the most that they held together, shared pages counted once.
/// It is summed up now and then only, so it is never said to be less than what the main process held alone.
Peak whole_peak(const verdict::Evidence& evidence);

struct ProcessLine {
  std::string name;  // "python3 4711"
  int64_t pid = 0;
  std::vector<std::pair<double, Bytes>> points;  // resident, by time
};
/// What each process was seen to hold, the main one first; empty where it was alone.
std::vector<ProcessLine> process_lines(const verdict::Evidence& evidence);

}  // namespace millpond::report
