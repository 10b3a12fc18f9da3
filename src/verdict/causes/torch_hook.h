// Containers that hooks of torch modules fill: what the causes C14 and C38 tell apart by.
#pragma once
#include "verdict/case.h"

namespace millpond::verdict {

/// By how it is reached, or by where its line was called from.
bool filled_by_hook(const Case& c, const Container& container);

}  // namespace millpond::verdict
