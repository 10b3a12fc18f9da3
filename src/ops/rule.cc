#include "ops/rule.h"

#include <algorithm>

#include "base/format.h"

namespace millpond::ops {

int Rule::operations() const {
  return int(
      std::ranges::count_if(update.code, [](const Instruction& i) { return i.function != Function::k_constant; }));
}

std::string to_string(const Rule& rule) { return format("{}: {}", rule.name, to_string(rule.update)); }

}  // namespace millpond::ops
