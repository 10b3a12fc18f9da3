// JAX programs compiled again and again: what C42 and C43 have in common.
#pragma once
#include "verdict/causes/cause.h"

namespace millpond::verdict {

struct JaxCompiles {
  double count = 0;  // after warm-up
  std::optional<Place> place;
  bool fresh = false;  // a new function is jitted each time
};
std::optional<JaxCompiles> jax_compiles(const Case& c);
Match jax_match(const Case& c, const JaxCompiles& j);

}  // namespace millpond::verdict
