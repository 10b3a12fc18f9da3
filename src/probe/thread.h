// What the probe knows of a thread: 72 bytes of thread-local memory that need no constructor and no destructor, so they
// are there in the first call of a thread and in the last one, when its other thread-local objects are gone already.
#pragma once
#include <errno.h>
#include <stdint.h>
#include <xmmintrin.h>

namespace millpond::probe {

// The one number the hooks look at. A block that is smaller takes size + 1 from it and is left alone; any other one
// goes to sampler::decide. 0, as a thread begins, sends its first block there.
inline constexpr uint64_t kForever = uint64_t{1} << 62;

struct Thread {
  uint64_t left;
  uint64_t rest;                  // of the gap to the next sample, beyond left: left is bounded (sampler.cc)
  uint64_t interval, exact_from;  // under which that gap was drawn
  uint64_t random;
  uint32_t quiet;   // the probe itself is at work, or the thread is paused: left is kForever (0: paused apart)
  uint32_t paused;  // of that, by millpond_probe_pause
  uint64_t resume;  // left before the pause
  uint32_t id;      // of the system
  uint32_t life;    // of the process in which this was set up; another one after fork
  uint32_t cell;    // 1: the next block of malloc is a sampled object of Python, and left is 0 so that it is met
};

// initial-exec: reaching it must not allocate.
extern __thread Thread me __attribute__((tls_model("initial-exec")));

inline bool passes(uint64_t size) {
  if (__builtin_expect(size < me.left, 1)) {
    me.left -= size + 1;
    return true;
  }
  return false;
}

// While one is there, nothing of this thread is sampled. The program's errno and floating point state come back
// untouched: it may trap on an inexact result, and our arithmetic would be the one to raise it.
class Quiet {
 public:
  Quiet() : left_(me.left), error_(errno), float_(_mm_getcsr()) {
    me.left = kForever;
    ++me.quiet;
    _mm_setcsr(0x1f80);
  }
  ~Quiet() {
    _mm_setcsr(float_);
    errno = error_;
    --me.quiet;
    me.left = left_;
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  uint64_t left() const { return left_; }
  // The sampler draws a new gap while it is quiet.
  void resume_with(uint64_t left) { left_ = left; }

 private:
  uint64_t left_;
  int error_;
  unsigned float_;
};

}  // namespace millpond::probe
