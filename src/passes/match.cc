#include "passes/match.h"

#include "ops/broadcast_to.h"

namespace millpond::passes {

std::optional<double> uniform_constant(graph::Value v) {
  while (as<ops::BroadcastTo>(v)) v = v.node->inputs[0];
  if (v.node->role != graph::Role::kConstant || v.node->constant.size() == 0) return {};
  const double first = v.node->constant.at(0);
  for (int64_t i = 1; i < v.node->constant.size(); ++i)
    if (v.node->constant.at(i) != first) return {};
  return first;
}

std::optional<ops::Extent> extent_in(const Shape& operand, const Shape& full) {
  if (operand.size() == 1 && full.size() != 1) return ops::Extent::kScalar;
  // strip leading ones, so that [1, 10] and [10] are the same
  const auto at = [](const Shape& s, int from_end) { return from_end <= s.rank() ? s[-from_end] : int64_t{1}; };
  const int rank = std::max(operand.rank(), full.rank());
  bool same = true, row = true, column = at(operand, 1) == 1;
  for (int i = 1; i <= rank; ++i) {
    if (i > full.rank() && at(operand, i) != 1) return {};
    same &= at(operand, i) == at(full, i);
    if (i == 1) row &= at(operand, i) == at(full, i);
    else row &= at(operand, i) == 1, column &= at(operand, i) == at(full, i);
  }
  if (same) return ops::Extent::kFull;
  if (row) return ops::Extent::kRow;
  if (column) return ops::Extent::kColumn;
  return {};
}

}  // namespace millpond::passes
