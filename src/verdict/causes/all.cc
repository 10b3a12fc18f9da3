#include "verdict/causes/cause.h"

namespace millpond::verdict {

const std::vector<const Cause*>& causes() {
  static const std::vector<const Cause*> all = {
#define CAUSE(name) &name,
#include "verdict/causes/list.inc"
#undef CAUSE
  };
  return all;
}

}  // namespace millpond::verdict
