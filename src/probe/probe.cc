// libmillpond_probe.so: the hooks, and what the agent calls. See shared.h for what it writes. No exceptions, no
// iostream, no malloc in hooks. sys/mman.h and malloc.h stay out, because they declare some of the hooks in another
// way.
//
// A hook costs one comparison (thread.h) when it takes memory and one look at the filter (live.h) when it gives memory
// back; the rest happens for sampled blocks alone.
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "probe/agent_heap.h"
#include "probe/cells.h"
#include "probe/early.h"
#include "probe/enter.h"
#include "probe/file.h"
#include "probe/live.h"
#include "probe/mappings.h"
#include "probe/marks.h"
#include "probe/python_allocators.h"
#include "probe/real.h"
#include "probe/ring.h"
#include "probe/sampler.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/tick.h"
#include "probe/use.h"

namespace millpond::probe {
namespace {

template <class Call>
__attribute__((noinline)) void* decide_and_allocate(size_t size, const void* caller, Call call) {
  const Weight weight = sampler::decide(size);
  void* block = call();
  if (weight.bytes && block) sampler::record(block, size, weight, kLiveMalloc, caller);
  return block;
}
template <class Call>
inline __attribute__((always_inline)) void* allocate(size_t size, const void* caller, Call call) {
  if (__builtin_expect(passes(size), 1)) return call();
  return decide_and_allocate(size, caller, call);
}
// malloc and calloc also serve the sampled objects of Python, and the agent.
template <class Call>
__attribute__((noinline)) void* serve_or_decide(size_t size, bool zero, const void* caller, Call call) {
  if (me.paused && me.quiet == me.paused) {
    void* block = agent_heap::take(size);
    if (block && zero) memset(block, 0, size);
    return block ? block : call();
  }
  if (me.cell) {
    me.cell = 0;
    me.left = kForever;
    void* cell = size == cells::kAsked ? cells::take() : nullptr;
    return cell ? cell : call();
  }
  return decide_and_allocate(size, caller, call);
}

// The record goes first: once the block is free another thread may get it, and record it anew.
__attribute__((noinline)) void free_recorded(void* block) {
  if (early::holds(block)) return;
  live::remove(block);
  if (cells::holds(block)) return cells::give(block);
  if (agent_heap::holds(block)) return agent_heap::give(block);
  real::free(block);
}
inline __attribute__((always_inline)) void give_back(void* block) {
  if (__builtin_expect(live::may_hold(block), 0)) return free_recorded(block);
  real::free(block);
}

__attribute__((noinline)) void* realloc_recorded(void* block, size_t size, const void* caller) {
  if (early::holds(block)) return early::realloc(block, size);
  if (const bool agents = agent_heap::holds(block); agents || cells::holds(block)) {
    if (agents && agent_heap::resize(block, size)) return block;
    const size_t room = agents ? agent_heap::room_of(block) : cells::kBytes;
    const auto call = [=] { return real::malloc(size); };
    void* moved = passes(size) ? call() : serve_or_decide(size, false, caller, call);
    if (!moved) return nullptr;
    memcpy(moved, block, size < room ? size : room);
    free_recorded(block);
    return moved;
  }
  Live entry;
  const bool known = live::remove(block, &entry);
  void* moved = allocate(size, caller, [=] { return real::realloc(block, size); });
  if (!moved && known && size != 0) live::put_back(entry);
  return moved;
}

bool is_mapped(void* p) { return p != reinterpret_cast<void*>(-1); }

int (*real_trim)(size_t) = nullptr;
size_t (*real_usable_size)(void*) = nullptr;

}  // namespace
}  // namespace millpond::probe

using namespace millpond::probe;

#define MP_EXPORT extern "C" __attribute__((visibility("default")))
#define MP_CALLER __builtin_return_address(0)

MP_EXPORT void* malloc(size_t size) {
  if (__builtin_expect(passes(size), 1)) return real::malloc(size);
  return serve_or_decide(size, false, MP_CALLER, [=] { return real::malloc(size); });
}
MP_EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || passes(bytes)) return real::calloc(count, size);
  return serve_or_decide(bytes, true, MP_CALLER, [=] { return real::calloc(count, size); });
}
MP_EXPORT void* realloc(void* block, size_t size) {
  if (__builtin_expect(live::may_hold(block), 0)) return realloc_recorded(block, size, MP_CALLER);
  return allocate(size, MP_CALLER, [=] { return real::realloc(block, size); });
}
MP_EXPORT void free(void* block) { give_back(block); }
MP_EXPORT void free_sized(void* block, size_t) { give_back(block); }
MP_EXPORT void free_aligned_sized(void* block, size_t, size_t) { give_back(block); }
MP_EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  int error = 0;
  void* old = *block;
  allocate(size, MP_CALLER, [&]() -> void* {
    error = real::posix_memalign(block, alignment, size);
    return error ? nullptr : *block;
  });
  if (error) *block = old;
  return error;
}
MP_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return allocate(size, MP_CALLER, [=] { return real::aligned_alloc(alignment, size); });
}
MP_EXPORT void* memalign(size_t alignment, size_t size) {
  return allocate(size, MP_CALLER, [=] { return real::memalign(alignment, size); });
}
MP_EXPORT void* valloc(size_t size) {
  return allocate(size, MP_CALLER, [=] { return real::valloc(size); });
}
MP_EXPORT void* pvalloc(size_t size) {
  return allocate(size, MP_CALLER, [=] { return real::pvalloc(size); });
}

// It takes nothing; but blocks of our own are malloc's for the program, and it may write as many bytes as this says.
MP_EXPORT size_t malloc_usable_size(void* block) {
  if (__builtin_expect(live::may_hold(block), 0)) {
    if (cells::holds(block)) return cells::kBytes;
    if (agent_heap::holds(block)) return agent_heap::room_of(block);
    if (early::holds(block)) return 0;
  }
  if (!real_usable_size) {
    Quiet quiet;
    real_usable_size = reinterpret_cast<size_t (*)(void*)>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  }
  return real_usable_size ? real_usable_size(block) : 0;
}
MP_EXPORT void* mmap(void* at, size_t size, int protection, int flags, int fd, long offset) {
  void* p = real::mmap(at, size, protection, flags, fd, offset);
  if (is_mapped(p)) mappings::added(p, size, protection, flags, fd, MP_CALLER);
  return p;
}
MP_EXPORT void* mmap64(void* at, size_t size, int protection, int flags, int fd, long offset) {
  void* p = real::mmap64(at, size, protection, flags, fd, offset);
  if (is_mapped(p)) mappings::added(p, size, protection, flags, fd, MP_CALLER);
  return p;
}
MP_EXPORT int munmap(void* at, size_t size) {
  mappings::removing(at, size);
  return real::munmap(at, size);
}
MP_EXPORT void* mremap(void* at, size_t size, size_t new_size, int flags, void* new_at) {
  const mappings::Moved moved = mappings::lift(at, size);
  void* p = real::mremap(at, size, new_size, flags, new_at);
  mappings::put_down(moved, is_mapped(p) ? p : at, is_mapped(p) ? new_size : size);
  return p;
}

// ---- under names that lead here and nowhere else: the tables of a program that runs get these addresses (enter.cc)
// ----
#define MP_ALIAS(name) \
  asm(".globl millpond_hook_" #name "\n.hidden millpond_hook_" #name "\n.set millpond_hook_" #name ", " #name);
MP_ALIAS(malloc)
MP_ALIAS(calloc)
MP_ALIAS(realloc)
MP_ALIAS(free)
MP_ALIAS(free_sized)
MP_ALIAS(free_aligned_sized)
MP_ALIAS(posix_memalign)
MP_ALIAS(aligned_alloc)
MP_ALIAS(memalign)
MP_ALIAS(valloc)
MP_ALIAS(pvalloc)
MP_ALIAS(mmap)
MP_ALIAS(mmap64)
MP_ALIAS(munmap)
MP_ALIAS(mremap)
#undef MP_ALIAS

// ---- for the agent ----
MP_EXPORT int millpond_probe_version(void) { return kProbeVersion; }
MP_EXPORT int millpond_probe_python(void) { return python::wrap_allocators(); }
MP_EXPORT uint64_t* millpond_probe_units(void) {
  return file::is_open() && !may_leave ? file::shared->units
                                       : own_units;  // not watched: the agent may count all the same
}
MP_EXPORT void millpond_probe_mark(const char* kind, const char* name, int64_t index, uint32_t flags) {
  marks::mark(kind, name, index, flags);
}
MP_EXPORT int millpond_probe_note(const char* json, size_t size) {
  if (me.quiet > me.paused) return 1;
  Use use;
  if (!use) return 1;
  Quiet quiet;
  const uint64_t begin = sys::now_ns();
  NoteRecord record{};
  if (size > kRingBytes / 2) return 1;
  record.text_size = uint32_t(size);
  __atomic_store_n(&file::shared->agent, 1, __ATOMIC_RELAXED);
  const bool written = ring::write(kRecordNote, begin, {&record, sizeof record}, {json, size});
  sampler::spent(sys::now_ns() - begin);
  return written ? 0 : 1;
}
MP_EXPORT void millpond_probe_pause(int on) {
  if (on) {
    if (me.paused++ == 0) {
      me.resume = me.left;
      me.left = on == kPauseApart && !may_leave ? 0 : kForever;
    }
    ++me.quiet;
  } else if (me.paused) {
    --me.quiet;
    if (--me.paused == 0) me.left = me.resume;
  }
}
MP_EXPORT void millpond_probe_tick(void* callable, uint64_t every_ns) { tick::set(callable, every_ns); }
MP_EXPORT int millpond_probe_trim(void) {
  Quiet quiet;
  if (!real_trim) real_trim = reinterpret_cast<int (*)(size_t)>(allocator_function("malloc_trim"));
  return real_trim ? real_trim(0) : -1;
}
MP_EXPORT uint64_t millpond_probe_free_bytes(void) {
  Quiet quiet;
  return marks::free_bytes();
}
