// Who is at work in the shared memory. A probe that came in at run time leaves again (enter.h): it closes the file for
// everybody, waits until nobody is at work in it, and only then takes the memory away. A preloaded probe never leaves,
// and pays nothing.
#pragma once
#include <stdint.h>

#include "probe/file.h"

namespace millpond::probe {

extern bool may_leave;  // set before the first hook is called, and never changed while one can be
extern int64_t users;

// While one is there and true, file::shared stays. Nests.
class Use {
 public:
  Use() {
    if (may_leave) __atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);  // before the state is read
    open_ = file::is_open();
  }
  ~Use() {
    if (may_leave) __atomic_fetch_sub(&users, 1, __ATOMIC_RELEASE);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const { return open_; }

 private:
  bool open_;
};

}  // namespace millpond::probe
