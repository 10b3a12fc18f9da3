// Python's small objects: pymalloc takes arenas from the system and cuts them up, so malloc never sees an object. Its
// allocators for the domains MEM and OBJ are wrapped; what they take from malloc for a small object is part of it and
// not counted again. Objects from before pass through, as the old allocator gets every call.
#pragma once
#include <stdint.h>

namespace millpond::probe::python {

// With the GIL held. 0: done, now or before.
int wrap_allocators();
// Bytes of pymalloc's arenas; ~0 while its allocators are not wrapped.
uint64_t arena_bytes();

}  // namespace millpond::probe::python
