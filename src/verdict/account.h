// Where growth went: parts that add up to what was measured, for the process that is judged and the memory of its host.
//
//   growth of resident memory = held by objects of Python (by holder) + held by native code + garbage until gc runs
//                             + in use, beyond what was sampled + free in the allocator - asked for and never written + not explained
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "verdict/case.h"

namespace millpond::verdict {

struct AccountPart {
  enum class Kind { kHeld, kNative, kGarbage, kInUse, kFree, kUntouched, kUnexplained };
  Kind kind = Kind::kHeld;
  std::string name;                // "attribute seen of Trainer"; of others a few words
  std::vector<std::string> chain;  // of a holder
  std::optional<Place> born;       // where most of it was allocated
  double bytes = 0;
  double error = 0;                // half of a 95 % interval
};
std::string_view to_string(AccountPart::Kind kind);  // "held", "native", "garbage", "in use", "free", "untouched", "unexplained"

struct Account {
  double growth = 0, error = 0;    // of resident memory, after warm-up
  double rounds = 0;
  Unit unit = Unit::kRun;
  std::vector<AccountPart> parts;  // their sum is `growth`; most bytes first, what is not explained last
};

/// Nothing where no round was seen, or resident memory was not.
std::optional<Account> account(const Case& c);

}  // namespace millpond::verdict
