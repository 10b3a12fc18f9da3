/* The counters of libmillpond_count.so: how often a process asked for memory, and for how much. Plain C; needs nothing.
 *
 *   LD_PRELOAD=libmillpond_count.so MILLPOND_COUNT=/dev/shm/some_name program
 *
 * The program reads its own counters through count_page(); another process maps the file named by MILLPOND_COUNT (made
 * if it is not there, 4096 bytes) and reads them while they change. Without MILLPOND_COUNT they are the program's own.
 * Every counter only grows. Memory: that page, and 20 KiB inside the library. Time: about 10 ns for each call.
 *
 * Counted is every call that reaches the C library by name, from the program and from any library in it, except calls
 * made inside another one (an allocator's own mmap is part of its malloc). Not seen: system calls made directly, the C
 * library's own mappings (thread stacks), and allocators linked into a program statically.
 * The page belongs to the first process that claims it (so: a new name for each run): children, forked or started,
 * count into pages of their own; a program that replaces itself (exec) starts again from zero. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kCountVersion = 1, kCountPageBytes = 4096 };

enum CountHook {
#define MP_HOOK(name, result, parameters, arguments) kCount_##name,
#include "probe/hooks.inc"
#undef MP_HOOK
  kCountHooks
};

/* A cache line of its own each: threads that allocate at once would otherwise wait for one another's line. */
struct CountOf {
  uint64_t calls, bytes;
  uint64_t unused[6];
};

struct CountPage {
  uint64_t version; /* kCountVersion; 0 until the page is claimed */
  int64_t pid;      /* whose counters these are */
  uint64_t unused[6];
  struct CountOf heap_taken; /* blocks that the malloc family handed out, and their usable bytes (malloc_usable_size) */
  struct CountOf heap_given; /* blocks that came back; taken - given is what is alive. A realloc gives and takes */
  struct CountOf mapped;     /* mappings made or enlarged with success, in whole pages */
  struct CountOf unmapped;   /* mappings removed or made smaller, in whole pages */
  struct CountOf
      of[kCountHooks]; /* for each hook: all calls, failed ones too, and the bytes asked for (free: usable) */
};

/* The counters of this process; the symbol is there only while libmillpond_count.so is loaded. For code compiled as
 * position independent, as all of ours is: elsewhere the linker settles a weak symbol at null for good. */
const struct CountPage* millpond_count_page(void) __attribute__((weak));

/* The same, or null when nothing is counted. "Not counted" is not zero. */
static inline const struct CountPage* count_page(void) { return millpond_count_page ? millpond_count_page() : 0; }

static inline uint64_t count_read(const uint64_t* counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

/* Calls that take memory, of all kinds; free and munmap are not among them. The number that must not grow in a steady
 * state. */
static inline uint64_t count_allocations(const struct CountPage* page) {
  uint64_t n = 0;
  for (int i = 0; i < kCountHooks; ++i)
    if (i != kCount_free && i != kCount_munmap) n += count_read(&page->of[i].calls);
  return n;
}

#ifdef __cplusplus
}
static_assert(sizeof(CountPage) <= kCountPageBytes);
#endif
