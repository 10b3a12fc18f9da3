// What this process holds, asked at any moment: Millpond's accounts, and what the operating system says.
//
//   const MemoryReport now = memory();
//   std::printf("%s of weights, %s resident\n", to_string(now.account("weights")).c_str(), to_string(now.resident).c_str());
//
// Any thread may ask. Costs some microseconds and the report itself.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millpond/bytes.h"

namespace millpond {

struct MemoryReport {
  /// By name: "weights", "slots", "arena" (all models together; Model::memory() has them one by one),
  /// "data/predictions", "data/tensor", "pipeline/<stage>", ... What was taken for each; pages of it that nobody has
  /// touched are not resident.
  std::vector<std::pair<std::string, Bytes>> accounts;
  Bytes taken;     // the sum of the accounts
  Bytes resident;  // of the whole process, now
  Bytes peak;      // the most that ever was resident

  /// Sum over all accounts with this name or under it: account("data"). 0 when there is none.
  Bytes account(std::string_view name) const;
};

MemoryReport memory();

}  // namespace millpond
