// A call into the agent now and then, for programs that say nothing of their rounds. No thread of ours wakes (a program
// may fork, and newer Pythons warn of forks with threads): a sample that is taken asks Python to make the call when its
// main thread is next between two bytecodes. Where that thread only waits for others, it never is: then a thread that
// lives for this one call makes it, in a program that has several anyway.
#pragma once
#include <stdint.h>

namespace millpond::probe::tick {

// With the GIL. callable: a Python object, called without arguments; null: no more.
void set(void* callable, uint64_t every_ns);
void at(uint64_t now);

}  // namespace millpond::probe::tick
