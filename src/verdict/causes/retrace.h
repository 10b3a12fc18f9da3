// tf.functions that are traced again and again, for whatever reason: what the causes C1, C2, C3 and C6 have in common.
#pragma once
#include "verdict/causes/cause.h"

namespace millpond::verdict {

enum class Why { kArgument, kCallable, kShape, kCompiled };

struct Retrace {
  Why why = Why::kArgument;
  std::optional<Place> place;  // the user's line under which it happens
  double count = 0;            // after warm-up
  const CountedLine* line = nullptr;  // that place, as it was counted
};

/// Nothing when traces do not rise, or when new models and compiles explain them.
std::optional<Retrace> retrace(const Case& c);

/// The match that they make of it.
Match retrace_match(const Case& c, const Retrace& r);

}  // namespace millpond::verdict
