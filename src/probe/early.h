// What a hook does while the functions behind the hooks are being looked up (dlsym allocates before it can tell where
// malloc is), and for good where the system has no such function. Blocks come from 16 KiB inside the library and are
// never given back.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::early {

#define MP_HOOK(name, result, parameters, arguments) result name parameters;
#include "probe/hooks.inc"
#undef MP_HOOK

bool holds(const void* block);
/// For all blocks so far.
void each(void (*call)(const void* block));

// Each library defines these two, as constants: they are needed before its constructors run.
extern void (*const taken)(const void* block);  // called with every block; may be null
extern void* (*const room)(
    size_t size);  // where a block goes that is reallocated: malloc, or here while that is not known

}  // namespace millpond::probe::early
