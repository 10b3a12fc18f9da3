// What `fit` copies of the arrays it is given: asked by C12, and by others that must not claim the same bytes.
#pragma once
#include "verdict/causes/cause.h"

namespace millpond::verdict {

struct FitCopy {
  double bytes = 0;    // of the copies
  double doubles = 0;  // bytes of float64 arrays
  Place place;
};
FitCopy fit_copy(const Case& c);

}  // namespace millpond::verdict
