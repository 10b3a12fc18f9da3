// tree: a process and all below it, as /proc tells. Costs about 20 us for each process of the machine.
#pragma once
#include <string>
#include <vector>

#include "base/process.h"

namespace millpond::watch {

/// The process itself first. A process that ends meanwhile is left out.
std::vector<Pid> process_tree(Pid root);

/// Sums over a tree. Resident memory counts shared pages once for each process; the other two do not.
struct TreeMemory {
  int processes = 0;
  Bytes rss;
  std::optional<Bytes> private_dirty, pss;
};
/// `detailed` asks for private_dirty and pss, which cost some ms for each GiB.
TreeMemory memory_of(const std::vector<Pid>& tree, bool detailed);

/// Whether there is no such process any more, or only what its parent has not waited for.
bool has_ended(Pid pid);

std::string process_name(Pid pid);  // "python3"; empty when it is gone

}  // namespace millpond::watch
