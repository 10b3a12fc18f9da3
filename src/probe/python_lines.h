// From a place in the byte code to a line of the source, by the tables of each version. Decoding walks through the
// function's table, so the answers are kept: 128 KiB.
#pragma once
#include <stdint.h>

namespace millpond::probe::python {

struct Layout;

int decode_line(const Layout& l, const void* code, int64_t unit);  // each time anew

// number: of the code in shared.h; unit: as in python_frames.cc, -1 gives the first line.
int line_of(const void* code, int number, int64_t unit);
void forget_lines();  // in a child

}  // namespace millpond::probe::python
