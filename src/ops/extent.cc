#include "ops/extent.h"

#include <algorithm>

namespace millpond::ops {

std::optional<Extent> extent_in(const Shape& operand, const Shape& full) {
  if (operand.size() == 1 && full.size() != 1) return Extent::kScalar;
  // strip leading ones, so that [1, 10] and [10] are the same
  const auto at = [](const Shape& s, int from_end) { return from_end <= s.rank() ? s[-from_end] : int64_t{1}; };
  const int rank = std::max(operand.rank(), full.rank());
  bool same = true, row = true, column = at(operand, 1) == 1;
  for (int i = 1; i <= rank; ++i) {
    if (i > full.rank() && at(operand, i) != 1) return {};
    same &= at(operand, i) == at(full, i);
    if (i == 1)
      row &= at(operand, i) == at(full, i);
    else
      row &= at(operand, i) == 1, column &= at(operand, i) == at(full, i);
  }
  if (same) return Extent::kFull;
  if (row) return Extent::kRow;
  if (column) return Extent::kColumn;
  return {};
}

}  // namespace millpond::ops
