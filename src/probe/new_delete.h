// operator new and delete of an allocator that brings its own (jemalloc, tcmalloc, mimalloc: preloaded, or linked):
// they do not come by malloc, so malloc's hook does not see them. The tables of all modules are changed to lead to
// hooks here (relocations.h), as for a program that is entered while it runs. Exported from this library they would
// take the place of everybody's, also in programs whose C++ library lies where we cannot find it.
//
// A block is never counted twice: the hooks come in only where a call of new was tried and did not pass malloc's hook.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "probe/relocations.h"

namespace millpond::probe::new_delete {

inline constexpr size_t kFunctions = 20;

// Fills in what the program calls, where the allocator has it all to itself; the others stay null, and nothing leads to
// their hooks. False: there is nothing to hook.
bool look_up(const void* of_allocator);
extern relocations::Function functions[kFunctions];

// Preloaded, when the file is open. True: the tables must be changed now (tables.h), before the program takes a block.
bool start();

}  // namespace millpond::probe::new_delete
