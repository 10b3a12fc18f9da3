// Python's small objects: pymalloc takes arenas from the system and cuts them up, so malloc never sees an object. Its
// allocators for the domains MEM and OBJ are wrapped; what they take from malloc for a small object is part of it and
// not counted again. Objects from before pass through, as the old allocator gets every call.
#pragma once
#include <stdint.h>

namespace millpond::probe::python {

// Where the probe came in at run time, and may leave again, a sampled object stays in the block that the interpreter
// gave it, and its end is seen by wrapping free and realloc too: whoever frees it later knows nothing of cells.

// With the GIL held. 0: done, now or before.
int wrap_allocators();
// Puts the old ones back, with the GIL held. False: somebody has wrapped ours since; they stay below those and only
// pass calls on.
bool unwrap_allocators();
// Bytes of pymalloc's arenas; ~0 while its allocators are not wrapped.
uint64_t arena_bytes();

}  // namespace millpond::probe::python
