// A lock for rare work inside the probe: new stacks, mappings, records. Four bytes, no system call unless it waits
// long. It is never held across a call into the program, the loader or the allocator, so it cannot be part of a circle.
// A forked child opens every lock again (setup.cc): whoever held it is not there.
#pragma once
#include <sched.h>
#include <stdint.h>

namespace millpond::probe {

class Lock {
 public:
  void lock() {
    for (int tries = 0; __atomic_exchange_n(&held_, 1, __ATOMIC_ACQUIRE); ++tries)
      if (tries % 64 == 63)
        sched_yield();
      else
        __builtin_ia32_pause();
  }
  bool try_lock() { return !__atomic_exchange_n(&held_, 1, __ATOMIC_ACQUIRE); }
  void unlock() { __atomic_store_n(&held_, 0, __ATOMIC_RELEASE); }

 private:
  uint32_t held_ = 0;
};

class Locked {
 public:
  explicit Locked(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Lock& lock_;
};

}  // namespace millpond::probe
