// Which blocks are recorded, and what each stands for.
//
// Samples lie on the stream of a thread's allocated bytes like drops of rain, T bytes apart on average: the gap to the
// next is drawn from an exponential distribution, which forgets the past, so every byte is hit with the same
// probability whatever came before and whatever T was then. A block of `size` bytes (size + 1 are counted, so that
// empty ones can be met) is hit with p = 1 - exp(-(size + 1) / T) and stands for size / p bytes in 1 / p blocks (of
// Python's small objects: for what its allocator takes for them). Blocks of exact_from bytes and more are all recorded
// and take nothing from the gap.
//
// T begins at 512 KiB and follows what sampling costs: above 0.25 % of the time it doubles (to 16 MiB), below 0.0625 %
// it goes down as far as keeps it there (to 32 KiB, less far once the tables of stacks fill); what a sample does to the
// caches costs the program about as much again. It is time on the clock: a program that waits is sampled well too. T
// doubles too when the table of live blocks is half full. MILLPOND_INTERVAL sets it for good, MILLPOND_SEED makes the
// draws repeatable: both are for tests.
#pragma once
#include <stddef.h>

#include "probe/live.h"
#include "probe/thread.h"

namespace millpond::probe::sampler {

void start();  // the file is open

// For a block that did not pass (thread.h). bytes 0: it is not recorded. taken: what the allocator takes for a block of
// that size, where it is known and more than was asked for; the weight is of that, so that what is held adds up to what
// is resident (a float of Python's asks for 24 bytes and takes 32).
Weight decide(uint64_t size, uint64_t taken);
inline Weight decide(uint64_t size) { return decide(size, size); }

// Records a block that decide chose. caller: where the hook returns to. False: there was no room.
bool record(void* block, uint64_t size, Weight weight, LiveKind kind, const void* caller);

// Whether T is to change: asked at every sample, at marks, and by each thread after some bytes.
void look(uint64_t now);

// Time spent, for Shared.probe_ns; that of samples steers T.
void spent(uint64_t ns);

}  // namespace millpond::probe::sampler
