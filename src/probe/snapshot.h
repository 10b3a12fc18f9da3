// What is alive, added up by call stack. See marks.h for its memory.
#pragma once
#include "probe/shared.h"

namespace millpond::probe::snapshot {

inline constexpr uint32_t kSites = 2000;        // largest first; the rest is one more site
inline constexpr uint32_t kRest = 0xffffffffu;  // the stack of that one

struct Taken {
  const SiteBytes* sites = nullptr;
  uint32_t count = 0;
};
// One at a time: the caller holds a lock until it has used what was taken.
Taken take(uint64_t now_ms, uint64_t first_period_ms);

void forget();   // in a child
void release();  // its memory

}  // namespace millpond::probe::snapshot
