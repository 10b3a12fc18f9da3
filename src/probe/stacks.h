// Where the program is: the frames of this thread, interned in the tables of shared.h. Found again without a lock;
// a new stack is put in under one. Memory: the tables, and 768 bytes of the thread's stack meanwhile.
#pragma once
#include "probe/shared.h"

namespace millpond::probe::stacks {

struct Trace {
  Frame frames[kMaxDepth];
  uint32_t count = 0;
  uint16_t flags = 0;

  bool add(Frame frame) {
    if (count == kMaxDepth) {
      flags |= kCut;
      return false;
    }
    frames[count++] = frame;
    return true;
  }
  static constexpr uint16_t kCut = 1, kNoPython = 2;
};

void start();                   // the file is open
void show_native(bool always);  // instead of what MILLPOND_NATIVE says

// The number of the stack at this point: the native leaf, then Python's frames; all native frames where Python has
// none, and where MILLPOND_NATIVE=1 asks for them. Once the tables are full: that of the stack without frames, which
// stands for all that could not be kept.
uint32_t here(const void* caller);

}  // namespace millpond::probe::stacks
