// The other way in: the library is loaded into a program that runs (dlopen), and enters it.
//
//   preloaded     the loader binds malloc and the others to our hooks; sampled small objects of Python lie in cells; for good
//   at run time   the tables of every module are changed so that they lead to the same hooks (relocations.h), Python's allocators are exchanged, and sampled
//                 objects stay where the interpreter puts them: after leaving, whoever frees them knows nothing of us
//
// Leaving puts every word of every table and every allocator back, and takes all memory, files and descriptors of ours away; what stays is the library itself,
// because a thread may be in the middle of a hook, or have kept its address. A hook that is called after that passes the call on.
// millpond_probe_enter and millpond_probe_leave are declared in shared.h.
#pragma once
#include <stdint.h>

namespace millpond::probe {

// Whether the loader put this library in front of the C library.
bool is_preloaded();
// While inside, after every sample and before every mark: the tables of modules that came since, and the agent's
// counters.
void at_sample(uint64_t now_ns);
void at_mark();
void forget_who_is_here();  // in a child: the other threads are not

// What the agent counts in while inside. It keeps the address, so they lie in the library.
extern uint64_t own_units[];

}  // namespace millpond::probe
