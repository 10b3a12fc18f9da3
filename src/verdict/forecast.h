// When growth reaches the nearest limit.
#pragma once
#include <optional>

#include "verdict/case.h"

namespace millpond::verdict {

/// Nothing without a limit, or when the slope may be zero.
std::optional<Forecast> forecast(const Case& c);

}  // namespace millpond::verdict
