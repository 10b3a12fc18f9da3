// compare: what changed from one run to another, in one sentence, a table, and the places that differ most. Pure.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/doctor.h"
#include "report/lines.h"

namespace millpond::report {

struct Run {
  std::string name;                   // of the file
  const verdict::Evidence* evidence;  // borrowed
  const verdict::Verdict* verdict;
  SourceLine source{};  // the text of its lines; may be empty
};

/// A place in both runs. It is the same one when file name, function and text of the line are, wherever the file lies
/// and whatever number the line has; what is left over of one function is paired by size.
struct PlaceDifference {
  std::string file, function;
  int before = 0, after = 0;                 // lines; 0: not in that run
  double bytes_before = 0, bytes_after = 0;  // alive at the peak
  double difference() const { return bytes_after - bytes_before; }
};
/// Largest difference first.
std::vector<PlaceDifference> differences(const verdict::Evidence& before, const verdict::Evidence& after,
                                         const SourceLine& source_before = {}, const SourceLine& source_after = {});

std::string compare_sentence(const Run& before, const Run& after);
std::string compare_text(const Run& before, const Run& after, const TextStyle& style, int limit);
nlohmann::ordered_json compare_json(const Run& before, const Run& after, int limit);

}  // namespace millpond::report
