// Strings of Python, copied as UTF-8 without asking Python (which would allocate, and keep a copy).
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::python {

struct Layout;

// The bytes written, at most `room`; what does not fit is cut between two characters. 0 for what is not a compact
// string.
uint32_t copy_string(const Layout& l, const void* string, char* out, uint32_t room);

}  // namespace millpond::probe::python
