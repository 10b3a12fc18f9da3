// Bytes that a tf.data pipeline holds, as far as can be seen: taken since training began by threads without a line of
// the user's.
#pragma once
#include "verdict/causes/cause.h"

namespace millpond::verdict {

/// 0: nothing worth naming.
double held_by_pipeline(const Case& c);

}  // namespace millpond::verdict
