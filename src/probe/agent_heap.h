// Where the agent's blocks lie that are too large for pymalloc: dictionaries, lists, texts. It works at any moment of
// the program, also while that holds large blocks which it will free soon; a block of the agent's above them, in the
// program's heap, would keep the allocator from giving them back, and the program would hold memory because it is
// watched. So what a thread asks of malloc while it is paused with kPauseApart comes from a mapping of its own.
//
// Blocks of 1 KiB to 4 MiB, powers of two, with a header; one that was given back serves the next of its size. Like
// cells they are malloc's for the program: free and realloc tell them by their address, so live::may_hold is true of
// each.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::agent_heap {

void* take(size_t size);  // null: too large, or there is no room; the program's heap serves it then
void give(void* block);
bool holds(const void* block);
bool resize(void* block, size_t size);       // where it lies; false: it does not fit
size_t room_of(const void* block);           // bytes it can hold
uint64_t in_use();                           // bytes that were asked for and not given back
void each(void (*call)(const void* block));  // that is in use
void forget();                               // in a child: whoever held the lock is not there

}  // namespace millpond::probe::agent_heap
