#include <algorithm>

#include "verdict/causes/cause.h"

namespace millpond::verdict {

const std::vector<const Cause*>& causes() {
  static const std::vector<const Cause*> all = [] {
    std::vector<const Cause*> found;
#define CAUSES(name) \
  for (const Cause& cause : name) found.push_back(&cause);
#include "verdict/causes/list.inc"
#undef CAUSES
    return found;
  }();
  return all;
}

const Cause& cause_of(std::string_view id) { return **std::ranges::find(causes(), id, &Cause::id); }

}  // namespace millpond::verdict
