// Code objects of Python, each with its file and name in shared.h; found again by address without a lock.
// Memory: 256 KiB for the way to them and 16 KiB for file names, which many functions share.
#pragma once

namespace millpond::probe::codes {

void forget();  // in a child

// The place in codes[], or -1 when there is no room. The object is alive: it is on this thread's stack.
int number_of(const void* code_object);

// The machinery of `import`: five frames for every import, in stacks that are deep enough without.
bool is_importlib(int number);

}  // namespace millpond::probe::codes
