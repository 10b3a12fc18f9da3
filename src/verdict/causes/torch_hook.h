// Containers that hooks of torch modules fill: what the causes C14 and C38 tell apart by.
#pragma once
#include "verdict/case.h"

namespace millpond::verdict {

/// Its name, or the name of the function that fills it, speaks of a hook.
bool named_after_hook(const Container& container);

/// By where its line was called from; by the names where no stack tells.
bool filled_by_hook(const Case& c, const Container& container);

}  // namespace millpond::verdict
