#include "probe/python_allocators.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "probe/cells.h"
#include "probe/file.h"
#include "probe/live.h"
#include "probe/mappings.h"
#include "probe/modules.h"
#include "probe/python_layout.h"
#include "probe/python_types.h"
#include "probe/sampler.h"
#include "probe/thread.h"
#include "probe/use.h"

namespace millpond::probe::python {
namespace {

// The mallocs inside a wrapped call see a countdown that does not end.
class Inside {
 public:
  Inside() : left_(me.left) { me.left = kForever; }
  ~Inside() { me.left = left_; }
  uint64_t asked() const { return kForever - me.left; }  // of malloc: for each block its bytes and one more

 private:
  uint64_t left_;
};

// Python's allocators hand out small blocks in steps of 16 bytes.
uint64_t taken(size_t size) { return size ? (uint64_t{size} + 15) & ~uint64_t{15} : 16; }

ArenaAllocator old_arena;
uint64_t arenas = 0;
bool wrapped = false;

// pymalloc as it comes, for both domains: it serves small blocks itself and asks malloc for the others, which malloc's
// hooks see. A small block that is sampled is asked for as a larger one; malloc's hook gives it a cell and sees its
// end: pymalloc's free stays as it is, and what Python calls most often costs nothing.
namespace pymalloc {

constexpr size_t kSmall = cells::kBytes, kNotSmall = cells::kAsked;
Allocator old;

// Only a cell: of a block from elsewhere (all cells are used, or somebody has come between Python and malloc since) the
// end may not be seen.
void* record(void* block, size_t size, Weight weight, const void* caller) {
  if (!cells::holds(block)) {
    file::add(file::shared->lost_live);
  } else if (!sampler::record(block, size, weight, kLivePython, caller)) {
    live::mark(block);
  }
  return block;
}
template <class Call>
void* in_a_cell(Call call) {
  Inside inside;
  me.left = 0;
  me.cell = 1;
  void* block = call();
  me.cell = 0;
  return block;
}
__attribute__((noinline)) void* decide_and_malloc(size_t size, const void* caller) {
  const Weight weight = sampler::decide(size, taken(size));
  if (!weight.bytes) return old.malloc(nullptr, size);
  return record(in_a_cell([] { return old.malloc(nullptr, kNotSmall); }), size, weight, caller);
}
__attribute__((noinline)) void* decide_and_calloc(size_t count, size_t size, const void* caller) {
  const Weight weight = sampler::decide(count * size, taken(count * size));
  if (!weight.bytes) return old.calloc(nullptr, count, size);
  return record(in_a_cell([] { return old.calloc(nullptr, 1, kNotSmall); }), count * size, weight, caller);
}
__attribute__((noinline)) void* decide_and_realloc(void* block, size_t size, const void* caller) {
  const Weight weight = sampler::decide(size, taken(size));
  void* moved;
  {
    Inside inside;
    moved = old.realloc(nullptr, block, weight.bytes ? kNotSmall : size);
  }
  if (!weight.bytes || !moved) return moved;
  void* cell = in_a_cell([] { return old.malloc(nullptr, kNotSmall); });
  if (!cell) return moved;
  memcpy(cell, moved, size);
  old.free(nullptr, moved);
  return record(cell, size, weight, caller);
}

void* malloc(void*, size_t size) {
  if (__builtin_expect(size > kSmall || passes(size), 1)) return old.malloc(nullptr, size);
  return decide_and_malloc(size, __builtin_return_address(0));
}
void* calloc(void*, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > kSmall || passes(bytes))
    return old.calloc(nullptr, count, size);
  return decide_and_calloc(count, size, __builtin_return_address(0));
}
// The hook of malloc takes a recorded block out. It is kept from counting one that was large and becomes small.
void* realloc(void*, void* block, size_t size) {
  if (size > kSmall) return old.realloc(nullptr, block, size);
  if (__builtin_expect(passes(size), 1)) {
    Inside inside;
    return old.realloc(nullptr, block, size);
  }
  return decide_and_realloc(block, size, __builtin_return_address(0));
}

}  // namespace pymalloc

// Where we may leave, and any other allocator, of which nothing is known: debug hooks, tracemalloc, mimalloc. The
// functions know their domain by themselves: while allocators are exchanged in a Python without a GIL, another thread
// may read the context of one and the function of the other.
namespace resident {

Allocator old_of[kObject + 1];
bool small_only[kObject + 1];  // it asks malloc for larger blocks, and malloc's hooks see those

template <Domain domain>
struct Of {
  static const Allocator& old() { return old_of[domain]; }

  template <class Call>
  static void* allocate(size_t size, const void* caller, Call call) {
    if (small_only[domain] && size > pymalloc::kSmall) return call();
    const Weight weight = passes(size) ? Weight{} : sampler::decide(size, taken(size));
    void* block;
    {
      Inside inside;
      block = call();
    }
    if (weight.bytes && block) sampler::record(block, size, weight, kLivePython, caller);
    return block;
  }
  static void* malloc(void*, size_t size) {
    return allocate(size, __builtin_return_address(0), [=] { return old().malloc(old().context, size); });
  }
  static void* calloc(void*, size_t count, size_t size) {
    const auto call = [=] { return old().calloc(old().context, count, size); };
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return call();
    return allocate(bytes, __builtin_return_address(0), call);
  }
  static void* realloc(void*, void* block, size_t size) {
    Live entry;
    const bool known = live::may_hold(block) && live::remove(block, &entry);
    void* moved =
        allocate(size, __builtin_return_address(0), [=] { return old().realloc(old().context, block, size); });
    if (!moved && known) live::put_back(entry);
    return moved;
  }
  static void free(void*, void* block) {
    if (live::may_hold(block)) live::remove(block);
    old().free(old().context, block);
  }
  static Allocator ours() { return {nullptr, malloc, calloc, realloc, free}; }
};

Allocator ours(Domain domain) { return domain == kMem ? Of<kMem>::ours() : Of<kObject>::ours(); }

}  // namespace resident

void* take_arena(void* arena_, size_t size) {
  auto& old = *static_cast<ArenaAllocator*>(arena_);
  Quiet quiet;
  void* arena = old.alloc(old.context, size);
  if (arena) file::add(arenas, size);
  return arena;
}
void give_arena(void* arena_, void* arena, size_t size) {
  auto& old = *static_cast<ArenaAllocator*>(arena_);
  file::add(arenas, uint64_t{0} - size);
  Quiet quiet;
  old.free(old.context, arena, size);
}

// What an allocator asks of malloc for a block of that size.
uint64_t asks(const Allocator& allocator, size_t size) {
  Inside inside;
  void* block = allocator.malloc(allocator.context, size);
  const uint64_t asked = inside.asked();
  allocator.free(allocator.context, block);
  return asked;
}
bool passes_on(const Allocator& allocator, size_t size) { return asks(allocator, size) == size + 1; }

bool is_pymalloc(const Allocator& old) {
  return !old.context && asks(old, 1) == 0 && passes_on(old, pymalloc::kNotSmall);
}

bool same(const Allocator& a, const Allocator& b) {
  return a.context == b.context && a.malloc == b.malloc && a.calloc == b.calloc && a.realloc == b.realloc &&
         a.free == b.free;
}

using Get = void (*)(int, Allocator*);
using Set = Get;
using GetArena = void (*)(ArenaAllocator*);
using SetArena = GetArena;
Get get = nullptr;
Set set = nullptr;
GetArena get_arena = nullptr;
SetArena set_arena = nullptr;
bool in_the_way[kObject + 1];  // ours is below another one that came later, and could not be taken out when we left
bool arena_in_the_way = false;
const ArenaAllocator our_arena{&old_arena, take_arena, give_arena};

void wrap(Domain domain) {
  if (in_the_way[domain]) return;
  Allocator old;
  get(domain, &old);
  if (passes_on(old, 1)) return;  // PYTHONMALLOC=malloc: malloc sees every block
  const bool pymalloc = is_pymalloc(old);
  if (pymalloc && !may_leave) {
    pymalloc::old = old;
    Allocator ours{nullptr, pymalloc::malloc, pymalloc::calloc, pymalloc::realloc, old.free};
    set(domain, &ours);
  } else {
    resident::old_of[domain] = old;
    resident::small_only[domain] = pymalloc;
    Allocator ours = resident::ours(domain);
    set(domain, &ours);
  }
}

bool unwrap(Domain domain) {
  Allocator now;
  get(domain, &now);
  in_the_way[domain] = false;
  if (same(now, resident::ours(domain)))
    set(domain, &resident::old_of[domain]);
  else
    in_the_way[domain] = resident::old_of[domain].malloc && !same(now, resident::old_of[domain]);
  return !in_the_way[domain];
}

template <class F>
bool find(F& function, const char* name) {
  return (function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name)));
}

}  // namespace

int wrap_allocators() {
  if (!file::is_open()) return 1;
  if (wrapped) return 0;
  if (!find(get, "PyMem_GetAllocator") || !find(set, "PyMem_SetAllocator") ||
      !find(get_arena, "PyObject_GetArenaAllocator") || !find(set_arena, "PyObject_SetArenaAllocator"))
    return 1;
  {
    Quiet quiet;
    find_interpreter();
    prove_frames();
    modules::write_new();
  }
  wrapped = true;
  if (!arena_in_the_way) {
    get_arena(&old_arena);
    ArenaAllocator arena = our_arena;
    set_arena(&arena);
  }
  file::add(arenas, mappings::release_arenas());
  wrap(kMem);
  wrap(kObject);
  return 0;
}

bool unwrap_allocators() {
  if (!wrapped) return true;
  wrapped = false;
  bool all = unwrap(kMem);
  all = unwrap(kObject) && all;
  ArenaAllocator now;
  get_arena(&now);
  arena_in_the_way = now.alloc != take_arena;
  if (!arena_in_the_way) set_arena(&old_arena);
  __atomic_store_n(&arenas, 0, __ATOMIC_RELAXED);
  return all && !arena_in_the_way;
}

uint64_t arena_bytes() {
  return wrapped && !layout.free_threaded ? __atomic_load_n(&arenas, __ATOMIC_RELAXED) : ~uint64_t{0};
}

}  // namespace millpond::probe::python
