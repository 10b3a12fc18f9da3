// The functions behind the hooks: those of the C library, or of an allocator that is preloaded after this library.
// Each pointer is always callable. Until the real one is known it leads to a stand-in that looks all of them up; what
// dlsym itself asks for meanwhile comes from probe/early.h; those blocks are marked in the filter of live.h, so only
// the slow path meets them.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe {

namespace real {
#define MP_HOOK(name, result, parameters, arguments) extern result(*name) parameters;
#include "probe/hooks.inc"
#undef MP_HOOK
}  // namespace real

void look_up_real();
// The same for a library that was not preloaded: those that the program calls now.
void look_up_real_of_program();

// Code of the allocator in use; empty when that is the C library, whose own mappings do not come through hooks.
struct CodeRange {
  uintptr_t begin = 0, end = 0;
  bool holds(const void* p) const { return uintptr_t(p) - begin < end - begin; }
};
extern uint64_t allocator_flags;  // AllocatorFlags
extern CodeRange allocator_code;
// A function of the allocator in use, null where it has none: malloc_trim of the C library says nothing of jemalloc.
void* allocator_function(const char* name);

}  // namespace millpond::probe
