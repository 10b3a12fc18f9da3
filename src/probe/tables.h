// What a preloaded probe changes in the relocation tables (relocations.h), in one list: functions that it cannot stand
// in for by its own names, because they are an allocator's own (new_delete.h), or because only some programs need it
// (native_prints.h).
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "probe/relocations.h"

namespace millpond::probe::tables {

// Before change(): these too. Those without `real` are left alone.
void add(const relocations::Function* functions, size_t count);
void change();
void change_soon();  // with a sample some time from now: most programs live for a moment, and are to cost nothing
// After a sample: modules that came since are changed too. Looks at most ten times in a second.
void at_sample(uint64_t now);

}  // namespace millpond::probe::tables
