// How an operand broadcasts into the iteration space of an Expression.
#pragma once
#include <optional>

#include "ops/expression.h"

namespace millpond::ops {

/// How an operand of this shape goes into the iteration space of a tensor of shape `full`; nothing if it does not.
std::optional<Extent> extent_in(const Shape& operand, const Shape& full);

}  // namespace millpond::ops
