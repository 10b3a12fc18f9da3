// Mappings that the program makes itself: of 64 KiB and more that can be used, private or shared, of memory or of a
// file. All are recorded, as blocks of kind kLiveMmap at their first address; parts that are taken away are taken off.
// Rare, so one lock and a plain list do. Memory: 128 KiB when all 4,096 places are used; what does not fit is not
// recorded (lost_live). A mapping without access rights is address space, not memory, and is left out.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::mappings {

void added(void* at, size_t size, int protection, int flags, int fd, const void* caller);
// Before they go. Any range: whole mappings, parts, several, none.
void removing(void* at, size_t size);
// mremap, before and after. What was lifted is put down where the mapping lies now, with its old birth and stack.
struct Moved {
  bool known = false;
  uint32_t stack = 0, born_ms = 0;
};
Moved lift(void* at, size_t size);
void put_down(const Moved& moved, void* at, size_t size);

// Python's arenas look like mappings until its allocators are wrapped (python_allocators.h); from then on its objects
// are counted and the arenas are not. Lets go of those recorded so far, and returns their bytes.
uint64_t release_arenas();
// own_heap: the interpreter has a whole allocator of its own (mimalloc, in builds without the GIL), which reserves
// memory by the GiB and uses it piece by piece: those mappings are left out, what lies in them is counted as objects.
void set_python_code(uintptr_t begin, uintptr_t end, bool own_heap);

void forget();  // in a child

}  // namespace millpond::probe::mappings
