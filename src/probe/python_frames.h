// The Python call stack of this thread, read from the interpreter's memory. No function of Python's is called that
// could allocate, take the GIL or change a count: a thread's own chain of frames is changed by that thread alone, and
// what hangs on it stays alive meanwhile. About 20 ns a frame.
#pragma once
#include "probe/python_layout.h"
#include "probe/stacks.h"

namespace millpond::probe::python {

struct Place {
  const void* code;
  int64_t unit;  // of the instruction, two bytes each (3.9: of its byte); -1: before the first
  bool skip;     // it is no function's, or its function has not begun
};

const void* innermost_frame(const Layout& l, const void* thread);
inline const void* code_of(const Layout& l, const void* frame) {
  return reinterpret_cast<const void*>(at<uintptr_t>(frame, l.frame_code) & ~kTagBits);
}
inline bool is_shim(const Layout& l, const void* frame) {
  return l.has_shims && at<uint8_t>(frame, l.frame_owner) >= kOwnedByC;
}

// False: this is not a frame.
bool read_frame(const Layout& l, const void* frame, Place& place);

// Adds the frames; false: this thread has none, or they do not look as they should.
bool walk(stacks::Trace& trace);

}  // namespace millpond::probe::python
