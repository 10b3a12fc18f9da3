#include "ops/rule.h"

#include <algorithm>

#include "base/format.h"

namespace millpond::ops {

int Rule::operations() const {
  return int(
      std::ranges::count_if(update.code, [](const Instruction& i) { return i.function != Function::k_constant; }));
}

Rule Rule::for_weights(DType type) const {
  Rule rule = *this;
  rule.dtype = type == DType::kFloat64 ? type : DType::kFloat32;
  for (Expression* e : {&rule.update, &rule.scalars})
    for (Instruction& i : e->code) i.dtype = rule.dtype;
  return rule;
}

std::string to_string(const Rule& rule) { return format("{}: {}", rule.name, to_string(rule.update)); }

}  // namespace millpond::ops
