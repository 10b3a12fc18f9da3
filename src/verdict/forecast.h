// When growth reaches the nearest limit.
#pragma once
#include <optional>

#include "verdict/case.h"

namespace millpond::verdict {

/// Nothing without a limit, or when the slope may be zero. `unit`: of the rate; the round in which it happens is
/// counted in it.
std::optional<Forecast> forecast(const Case& c, Unit unit);

}  // namespace millpond::verdict
