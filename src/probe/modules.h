// Loaded code, so that native frames can be named after the run: a record for each module, once. Memory: 256 KiB while
// it looks, and 8 bytes for each module that was written.
#pragma once
#include <stdint.h>

namespace millpond::probe::modules {

// Writes those that came since the last time. Cheap when there are none; asks the loader, so it is not for hooks.
void write_new();
void forget();  // in a child, whose file is empty

}  // namespace millpond::probe::modules
