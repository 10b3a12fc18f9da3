// The native call stack of this thread, from the frame that called a hook outwards: by cached rules (cfi.h), within the
// bounds of the thread's stack; by the unwinder of the compiler (five times slower) where a frame has no simple rule or
// the stack is not the thread's own (fibres, signal stacks).
#pragma once
#include "probe/stacks.h"

namespace millpond::probe::native {

void start();  // the program is loaded; not for hooks

// Adds return addresses; the first one is `caller`, always.
void walk(stacks::Trace& trace, const void* caller);

// The same, but ends with the first frame outside of the C++ library: `operator new` tells nothing of who asked.
void walk_to_owner(stacks::Trace& trace, const void* caller);
void set_cxx_library(uintptr_t begin, uintptr_t end);

// By the unwinder of the compiler alone; for tests.
void walk_slowly(stacks::Trace& trace, const void* caller);

}  // namespace millpond::probe::native
