// Whether a layout is this interpreter's: what is read by it against what the interpreter's own functions say, for
// strings of every kind, for bytes, and for the innermost frames of this thread: the same code, file, name and line,
// one after the other. Nothing is followed that cannot be read, so a wrong layout is found out and does not end the
// program.
#pragma once
#include "probe/python_layout.h"

namespace millpond::probe::python {

enum class Checked { kRight, kWrong, kCannotTell /* this thread runs no Python, or one cannot ask */ };

// With the GIL held. About 0.1 ms.
Checked check(const Layout& l);

}  // namespace millpond::probe::python
