// The Python call stack of this thread, read from the interpreter's memory. No function of Python's is called that could
// allocate, take the GIL or change a count: a thread's own chain of frames is changed by that thread alone, and what
// hangs on it stays alive meanwhile. About 20 ns a frame.
#pragma once
#include "probe/stacks.h"

namespace millpond::probe::python {

// Adds the frames; false: this thread has none, or they do not look as they should.
bool walk(stacks::Trace& trace);

}  // namespace millpond::probe::python
