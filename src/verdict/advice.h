// What was seen on the way and is worth changing, whatever the verdict.
#pragma once
#include <vector>

#include "verdict/case.h"

namespace millpond::verdict {

std::vector<Advice> advice(const Case& c);

}  // namespace millpond::verdict
