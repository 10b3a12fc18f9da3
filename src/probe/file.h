// The shared memory of this process (shared.h) as the rest of the probe sees it. Cost: the pages that were written.
#pragma once
#include "probe/shared.h"

namespace millpond::probe::file {

enum State : uint32_t {
  kStarting,  // the C library is not up yet
  kInert,     // nothing is watched
  kOpen
};
extern uint32_t state;
// There while state is kOpen, and from then on for good: in a child without a file of its own it is plain memory that
// nobody reads. A fork may come in the middle of our own work (from a signal's handler), which goes on in the child.
extern ::Shared* shared;
extern uint32_t life;  // 1, and one more in every child by fork

inline Live* live() { return reinterpret_cast<Live*>(reinterpret_cast<char*>(shared) + kLiveAt); }
inline Stack* stacks() { return reinterpret_cast<Stack*>(reinterpret_cast<char*>(shared) + kStacksAt); }
inline Frame* frames() { return reinterpret_cast<Frame*>(reinterpret_cast<char*>(shared) + kFramesAt); }
inline Code* codes() { return reinterpret_cast<Code*>(reinterpret_cast<char*>(shared) + kCodesAt); }
inline char* text() { return reinterpret_cast<char*>(shared) + kTextAt; }
inline char* ring() { return reinterpret_cast<char*>(shared) + kRingAt; }

// Whether this process may write: the file is open, and it is ours. False too in a child that was made without the C
// library (a bare clone) and would write into its parent's file; a page that the system wipes at every fork tells.
bool is_open();

// Backs a part of the file with memory before it is written: on a full file system a write would be a SIGBUS in a
// stranger's program. False: there is no room, in the file system or in what all processes may take (Room).
bool reserve(const void* at, size_t size);
// Time that reserve took so far: it is spent once for each part, so it says nothing of what the next sample costs.
extern uint64_t reserve_ns;
bool was_reserved(const void* at);  // if not, it was never written

// Makes <MILLPOND_WATCH>/<pid>.probe, or <pid>.<n>.probe where that is taken (the process before exec, a pid used
// again). Without a folder, or without room in it, the state becomes kInert.
void open();
// The same in a folder that is told. False: no file could be made there.
bool open_in(const char* folder);
// Takes the memory of the file away. The state is kInert, and nobody is at work in it.
void close();
// In a child by fork: lets go of the parent's file and opens one of its own in its place, if `follow`.
void open_again(bool follow);
void become_inert();
// A program is started that nothing is loaded into (first_place.h), or was not (-1). May come after vfork.
void count_sanitized(int by);

inline void add(uint64_t& counter, uint64_t by = 1) { __atomic_fetch_add(&counter, by, __ATOMIC_RELAXED); }
uint32_t since_start_ms(uint64_t now_ns);

}  // namespace millpond::probe::file
