// Who points to native blocks: whether they are lost, or kept and by what. One look at the writable memory of the process, in a child made for it, for words that lie in
// a sampled block (anywhere in it: a pointer may lead to the middle).
//
//   1. from what is always there: variables of static storage, then the stacks from their pointers on; what they point to is looked into, and so on. A block that
//      was sampled is known with its size; of another one the C library's own word in front of it tells the size (with other allocators such blocks are not followed)
//   2. all other memory, for blocks that were not reached so
//
// What nothing points to is lost: no free can ever come. Registers of other threads are not seen; old words in dead parts of memory may make single blocks look kept,
// so what is said is said of the bytes of a birth, not of a block. Costs about 1 ns for a byte, of a processor that has nothing else to do.
#pragma once
#include "probe/shared.h"

namespace millpond::probe::scan {

// Blocks that are not asked for: those of Python's objects, which a walk has found.
struct Owned {
  bool (*is)(const void* context, uint64_t address) = nullptr;
  const void* context = nullptr;
};

// Whether one may be made now, by what they have cost so far and by page tables; says in the shared memory why not.
// Notes where the stacks of all threads begin: called before the child is made, in the thread that makes it.
bool may_begin();
// In the child.
bool run(Scan& result, const Owned& owned);
// The child is done: what it found goes to the ring.
void publish(Scan& result);
void died();

// A program without an agent: after a sample. Looks at rounds of the clock, each 1.5 times as late as the one before.
void at_sample(uint64_t now);
void forget();   // in a child by fork
void release();  // the probe leaves

}  // namespace millpond::probe::scan
