// The loader, asked for its modules. It holds a lock of its own meanwhile, which glibc does not open again in a forked
// child: whoever forks waits until none of our threads is asking, or the child would wait for ever when it asks. Not
// for calls from within a callback.
#pragma once
#include <link.h>
#include <sched.h>

#include "probe/lock.h"

namespace millpond::probe::loader {

inline Lock asking;

inline int each_module(int (*callback)(dl_phdr_info*, size_t, void*), void* argument) {
  Locked locked(asking);
  return dl_iterate_phdr(callback, argument);
}

// Before a fork; it does not wait for longer than a thread of ours can take, whatever stands in its way.
inline bool hold() {
  constexpr int kMostTries = 200'000;
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (asking.try_lock()) return true;
    sched_yield();
  }
  return false;
}
inline void forget() { asking = {}; }

}  // namespace millpond::probe::loader
