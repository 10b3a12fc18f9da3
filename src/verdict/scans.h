// Who points to native blocks that are alive, as one look at the whole memory of the process found it (probe/scan.h).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace millpond::verdict {

struct NativeScan {
  struct Variable {
    std::string name, module;  // of static storage; name: empty where the module does not tell
    double bytes = 0;          // that it leads to
  };
  struct Way {
    int64_t site = 0;  // row of the run file: where the block was born that points to them
    double bytes = 0;
  };
  struct Group {  // blocks that were born at one site
    int64_t site = 0;
    double bytes = 0, lost = 0, by_static = 0, by_stack = 0, by_block = 0, by_other = 0;
    std::vector<Variable> variables;  // most bytes first
    std::vector<Way> ways;
    void add(const Group& more);
  };
  std::vector<Group> groups;

  /// All blocks that were born at these sites.
  Group of(const std::vector<int64_t>& sites) const;
};

NativeScan scan_of(const nlohmann::json& note);

}  // namespace millpond::verdict
