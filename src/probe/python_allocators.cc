#include "probe/python_allocators.h"

#include <dlfcn.h>
#include <stddef.h>

#include <utility>

#include "probe/file.h"
#include "probe/live.h"
#include "probe/mappings.h"
#include "probe/modules.h"
#include "probe/python_layout.h"
#include "probe/sampler.h"
#include "probe/thread.h"

namespace millpond::probe::python {
namespace {

// As in cpython/pymem.h and objimpl.h; the same since 3.5.
struct Allocator {
  void* context;
  void* (*malloc)(void* context, size_t size);
  void* (*calloc)(void* context, size_t count, size_t size);
  void* (*realloc)(void* context, void* block, size_t size);
  void (*free)(void* context, void* block);
};
struct ArenaAllocator {
  void* context;
  void* (*alloc)(void* context, size_t size);
  void (*free)(void* context, void* arena, size_t size);
};
enum Domain { kRaw, kMem, kObject };

struct Wrapped {
  Allocator old;
  bool keeps_small;  // it serves small blocks itself, from arenas: then malloc need not be kept from counting them
};
Wrapped mem, object;
constexpr size_t kSmall = 512;  // for pymalloc
ArenaAllocator old_arena;
uint64_t arenas = 0;
bool wrapped = false;

// The mallocs inside a wrapped call see a countdown that does not end.
class Inside {
 public:
  Inside() : left_(me.left) { me.left = kForever; }
  ~Inside() { me.left = left_; }

 private:
  uint64_t left_;
};

template <class Call>
__attribute__((noinline)) void* decide_and_allocate(size_t size, const void* caller, Call call) {
  const Weight weight = sampler::decide(size);
  void* block;
  {
    Inside inside;
    block = call();
  }
  if (weight.bytes && block) sampler::record(block, size, weight, kLivePython, caller);
  return block;
}

// An Inside does not count as quiet, so a mapping made in it would be recorded; arenas are counted by themselves.
template <class Call>
inline __attribute__((always_inline)) void* allocate(bool keeps_small, size_t size, const void* caller, Call call) {
  if (__builtin_expect(passes(size), 1)) {
    if (size <= kSmall && keeps_small) return call();
    Inside inside;
    return call();
  }
  return decide_and_allocate(size, caller, call);
}
void* malloc(void* wrapped_, size_t size) {
  auto& w = *static_cast<Wrapped*>(wrapped_);
  return allocate(w.keeps_small, size, __builtin_return_address(0),
                  [=, &w] { return w.old.malloc(w.old.context, size); });
}
void* calloc(void* wrapped_, size_t count, size_t size) {
  auto& w = *static_cast<Wrapped*>(wrapped_);
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return w.old.calloc(w.old.context, count, size);
  return allocate(w.keeps_small, bytes, __builtin_return_address(0),
                  [=, &w] { return w.old.calloc(w.old.context, count, size); });
}
__attribute__((noinline)) void* realloc_recorded(const Wrapped& w, void* block, size_t size, const void* caller) {
  Live entry;
  const bool known = live::remove(block, &entry);
  void* moved = allocate(false, size, caller, [=, &w] { return w.old.realloc(w.old.context, block, size); });
  if (!moved && known) live::put_back(entry);
  return moved;
}
void* realloc(void* wrapped_, void* block, size_t size) {
  auto& w = *static_cast<Wrapped*>(wrapped_);
  if (live::may_hold(block)) return realloc_recorded(w, block, size, __builtin_return_address(0));
  // A large block may become small: then malloc is asked after all.
  return allocate(false, size, __builtin_return_address(0),
                  [=, &w] { return w.old.realloc(w.old.context, block, size); });
}
void free(void* wrapped_, void* block) {
  auto& w = *static_cast<Wrapped*>(wrapped_);
  if (live::may_hold(block)) live::remove(block);
  w.old.free(w.old.context, block);
}

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

// pymalloc as it comes: not that of PYTHONMALLOC=malloc, which is the raw one, and nothing (debug hooks, tracemalloc)
// between. It is not tried out: an agent may call us through ctypes.CDLL, without the GIL.
bool keeps_small(const Allocator& allocator, const Allocator& raw) {
  return !allocator.context && !raw.context && allocator.malloc != raw.malloc;
}

}  // namespace

int wrap_allocators() {
  if (!file::is_open()) return 1;
  if (wrapped) return 0;
  const auto get = reinterpret_cast<void (*)(int, Allocator*)>(dlsym(RTLD_DEFAULT, "PyMem_GetAllocator"));
  const auto set = reinterpret_cast<void (*)(int, Allocator*)>(dlsym(RTLD_DEFAULT, "PyMem_SetAllocator"));
  const auto get_arena = reinterpret_cast<void (*)(ArenaAllocator*)>(dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator"));
  const auto set_arena = reinterpret_cast<void (*)(ArenaAllocator*)>(dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator"));
  if (!get || !set || !get_arena || !set_arena) return 1;
  {
    Quiet quiet;
    find_interpreter();
    modules::write_new();
  }
  wrapped = true;
  get_arena(&old_arena);
  ArenaAllocator arena{&old_arena, take_arena, give_arena};
  set_arena(&arena);
  file::add(arenas, mappings::release_arenas());
  Allocator raw;
  get(kRaw, &raw);
  for (const auto& [domain, w] : {std::pair<int, Wrapped*>{kMem, &mem}, {kObject, &object}}) {
    get(domain, &w->old);
    w->keeps_small = keeps_small(w->old, raw);
    Allocator ours{w, malloc, calloc, realloc, free};
    set(domain, &ours);
  }
  return 0;
}

uint64_t arena_bytes() { return wrapped ? __atomic_load_n(&arenas, __ATOMIC_RELAXED) : ~uint64_t{0}; }

}  // namespace millpond::probe::python
