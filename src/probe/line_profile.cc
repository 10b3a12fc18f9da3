#include "probe/line_profile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>

#include <initializer_list>

#include "probe/lock.h"
#include "probe/python_types.h"
#include "probe/relocations.h"
#include "probe/system.h"

namespace millpond::probe::lines {
namespace {

using Object = void;  // PyObject: only its address is used

// ---- what is asked of the interpreter ----
using python::Allocator, python::ArenaAllocator, python::Definition, python::kMem, python::kObject;
constexpr int kFastCall = 0x80, kNoArguments = 0x04;
enum { kTraceCall = 0, kTraceLine = 2, kTraceReturn = 3 };
using TraceFunction = int (*)(Object* self, Object* frame, int what, Object* value);

struct Python {
  int version = 0;
  long (*as_long)(Object*) = nullptr;
  Object* (*from_long)(long) = nullptr;
  Object* (*new_function)(Definition*, Object* self, Object* module) = nullptr;
  void (*take)(Object*) = nullptr;
  void (*drop)(Object*) = nullptr;
  Object* none = nullptr;
  int (*line_at)(Object* code, int offset) = nullptr;
  Object* (*code_of)(Object* frame) = nullptr;
  int (*line_of)(Object* frame) = nullptr;
  void (*set_trace)(TraceFunction, Object*) = nullptr;
  void (*get_allocator)(int, Allocator*) = nullptr;
  void (*set_allocator)(int, Allocator*) = nullptr;
  void (*get_arena_allocator)(ArenaAllocator*) = nullptr;
  void (*set_arena_allocator)(ArenaAllocator*) = nullptr;
};
Python py;

// ---- code that is profiled ----
struct Code {
  Object* code;
  int first, count;
};
Code codes[kLinesMostCodes];
uint32_t code_count = 0;
constexpr uint32_t kPlaces = 2 * kLinesMostCodes;
uint16_t places[kPlaces];  // number of a code, from 1

uint32_t place_of(const Object* code) {
  uint32_t at = uint32_t((uintptr_t(code) >> 4) * 0x9e3779b97f4a7c15u >> 40) % kPlaces;
  while (places[at] && codes[places[at] - 1].code != code) at = (at + 1) % kPlaces;
  return at;
}

// ---- a thread that is in a profiled function ----
struct Activation {
  Object* code;
  LineOfCode* line;  // that runs now, null: none yet
  LineOfCode* lines;
  int first, count;
  uint32_t
      strangers;  // functions on the stack above this one that are not profiled; only a trace function hears of them
  int64_t net, taken, given, blocks;  // when the line began
  int64_t line_peak, peak;            // while it ran so far; in this activation
};
struct Thread {
  int64_t net, taken, given, blocks, peak;
  const void* last_taken;  // the newest block
  const void* ghost;       // a block that is there because lines are counted: it is not counted, and its end neither
  int32_t calls;           // of enter() without leave()
  uint32_t depth;          // of activations; beyond kLinesMostDepth only counted
  int64_t top_peak, too_deep;
  int64_t resident_begin, resident_end, resident_peak;
  uint64_t began, looked_at;
  int statm;
  Thread* next_free;
  LineOfCode* lines[kLinesMostCodes];
  Activation stack[kLinesMostDepth];
};
static_assert(sizeof(Thread) < 512 << 10);

// Null while the thread is in no profiled function: all that the hooks look at. initial-exec: reaching it must not
// allocate.
__thread Thread* me __attribute__((tls_model("initial-exec"))) = nullptr;
__thread Thread* ended __attribute__((tls_model("initial-exec"))) = nullptr;  // the last that this thread was done with

Lock changing;
Thread* free_threads = nullptr;

Thread* new_thread() {
  Locked locked(changing);
  Thread* t = free_threads;
  if (t)
    free_threads = t->next_free;
  else
    t = static_cast<Thread*>(sys::map_private(sizeof(Thread)));
  return t;
}

// ---- bytes ----
inline void took(Thread& t, const void* block, int64_t size) {
  t.taken += size;
  t.net += size;
  ++t.blocks;
  t.last_taken = block;
  if (t.net > t.peak) t.peak = t.net;
}
inline void gave(Thread& t, const void* block, int64_t size) {
  if (__builtin_expect(block == t.ghost, 0)) {
    t.ghost = nullptr;
    return;
  }
  t.given += size;
  t.net -= size;
}
// The interpreter has just made this block in order to tell us of a line. If it was not made for that, it is not the
// newest one.
inline void is_ghost(Thread& t, const void* block, int64_t size) {
  if (t.last_taken != block) return;
  t.taken -= size;
  t.net -= size;
  --t.blocks;
  t.last_taken = nullptr;
  t.ghost = block;
}

namespace next {  // below the hooks: the C library's, another allocator's or the probe's
void* (*malloc)(size_t) = nullptr;
void* (*calloc)(size_t, size_t) = nullptr;
void* (*realloc)(void*, size_t) = nullptr;
void (*free)(void*) = nullptr;
int (*posix_memalign)(void**, size_t, size_t) = nullptr;
void* (*aligned_alloc)(size_t, size_t) = nullptr;
void* (*memalign)(size_t, size_t) = nullptr;
void* (*valloc)(size_t) = nullptr;
void* (*pvalloc)(size_t) = nullptr;
size_t (*malloc_usable_size)(void*) = nullptr;
}  // namespace next

namespace hook {
inline void* counted(void* block) {
  if (Thread* t = me; __builtin_expect(t != nullptr, 0) && block)
    took(*t, block, int64_t(next::malloc_usable_size(block)));
  return block;
}
void* malloc(size_t size) { return counted(next::malloc(size)); }
void* calloc(size_t count, size_t size) { return counted(next::calloc(count, size)); }
void free(void* block) {
  if (Thread* t = me; __builtin_expect(t != nullptr, 0) && block)
    gave(*t, block, int64_t(next::malloc_usable_size(block)));
  next::free(block);
}
void* realloc(void* block, size_t size) {
  Thread* t = me;
  if (__builtin_expect(t == nullptr, 1)) return next::realloc(block, size);
  const int64_t before = block ? int64_t(next::malloc_usable_size(block)) : 0;
  void* moved = next::realloc(block, size);
  if (!moved && size) return moved;
  if (block) gave(*t, block, before);
  return counted(moved);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  const int error = next::posix_memalign(block, alignment, size);
  if (!error) counted(*block);
  return error;
}
void* aligned_alloc(size_t alignment, size_t size) { return counted(next::aligned_alloc(alignment, size)); }
void* memalign(size_t alignment, size_t size) { return counted(next::memalign(alignment, size)); }
void* valloc(size_t size) { return counted(next::valloc(size)); }
void* pvalloc(size_t size) { return counted(next::pvalloc(size)); }
}  // namespace hook

#define MP_LINES_HOOKS(X) \
  X(malloc) X(calloc) X(realloc) X(free) X(posix_memalign) X(aligned_alloc) X(memalign) X(valloc) X(pvalloc)
relocations::Function functions[] = {
#define X(name) {#name, reinterpret_cast<void*>(hook::name), nullptr},
    MP_LINES_HOOKS(X)
#undef X
};
constexpr size_t kFunctions = sizeof functions / sizeof *functions;
bool glibc_below = true;

// ---- pymalloc: small objects ----
// A pool is 16 KiB (3.9: 4 KiB) at a multiple of its size, and begins with a header that says how large its blocks are.
// What the header must hold is redundant, so a page that only looks like a pool is not taken for one. It is read only
// where an arena can be: in memory that was mapped when we began or is an arena that came since.
namespace pools {

constexpr size_t kHeader = 48, kLargest = 512, kMostRegions = 1 << 14;
size_t pool_bytes = 0;  // 0: small objects are not counted
struct Region {
  uintptr_t begin, end;
};
Region* regions = nullptr;
size_t region_count = 0;
Region last{};

void add_region(uintptr_t begin, uintptr_t end) {
  if (!regions) return;
  size_t at = region_count;
  while (at > 0 && regions[at - 1].begin > begin) --at;
  if (at > 0 && regions[at - 1].end >= begin) {
    if (regions[at - 1].end < end) regions[at - 1].end = end;
    return;
  }
  if (at < region_count && regions[at].begin == end) {
    regions[at].begin = begin;
    return;
  }
  if (region_count == kMostRegions) return;
  memmove(regions + at + 1, regions + at, (region_count - at) * sizeof(Region));
  regions[at] = {begin, end};
  ++region_count;
}
bool is_mapped(uintptr_t pool) {
  if (pool >= last.begin && pool + pool_bytes <= last.end) return true;
  size_t low = 0, high = region_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (regions[middle].end <= pool)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == region_count || pool < regions[low].begin || pool + pool_bytes > regions[low].end) return false;
  last = regions[low];
  return true;
}

template <class T>
T at(uintptr_t address) {
  return *reinterpret_cast<const T*>(address);
}

// Bytes of the block; 0: pymalloc did not make it.
inline int64_t size_of(const void* block) {
  const uintptr_t p = uintptr_t(block), pool = p & ~(pool_bytes - 1);
  if (p - pool < kHeader) return 0;
  if (pool_bytes > sys::kPageSize) {
    // A block that malloc mapped by itself begins 16 bytes into a page; what lies below it may be unmapped by now.
    if ((p & (sys::kPageSize - 1)) == 16 && (at<uint64_t>(p - 8) & (sys::kPageSize - 1)) == 2) return 0;
    if (!is_mapped(pool)) return 0;
  }
  const uint32_t index = at<uint32_t>(pool + 36), size = (index + 1) * 16;
  return index < kLargest / 16 && at<uint32_t>(pool + 44) == pool_bytes - size &&
                 at<uint32_t>(pool) - 1 < pool_bytes / size
             ? size
             : 0;
}

void read_regions() {
  if (!regions) regions = static_cast<Region*>(sys::map_private(kMostRegions * sizeof(Region)));
  region_count = 0;
  last = {};
  const int fd = int(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (fd < 0 || !regions) return;
  char text[4096];
  uintptr_t value[2] = {};
  int part = 0, flag = 0;
  bool wanted = true;
  for (long n; (n = syscall(SYS_read, fd, text, sizeof text)) > 0;)
    for (long i = 0; i < n; ++i) {
      const char c = text[i];
      if (part < 2) {
        if (c == '-' || c == ' ')
          ++part, flag = 0;
        else
          value[part] = value[part] << 4 | uintptr_t(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (part == 2) {
        if (flag < 4) wanted = wanted && (flag == 2 || c == "rw-p"[flag]);
        if (++flag == 5) part = 3;
      } else if (c == '\n') {
        if (wanted) add_region(value[0], value[1]);
        value[0] = value[1] = 0;
        part = 0;
        wanted = true;
      }
    }
  syscall(SYS_close, fd);
}

Allocator old_of[kObject + 1];
ArenaAllocator old_arena;
const Allocator& old(void* context) { return *static_cast<Allocator*>(context); }

inline void* counted(Thread* t, void* block) {
  if (block)
    if (const int64_t size = size_of(block)) took(*t, block, size);  // otherwise malloc's hook has counted it
  return block;
}
void* malloc(void* context, size_t size) {
  void* block = old(context).malloc(old(context).context, size);
  if (Thread* t = me; t && size <= kLargest) return counted(t, block);
  return block;
}
void* calloc(void* context, size_t count, size_t size) {
  void* block = old(context).calloc(old(context).context, count, size);
  size_t bytes;
  if (Thread* t = me; t && !__builtin_mul_overflow(count, size, &bytes) && bytes <= kLargest) return counted(t, block);
  return block;
}
void* realloc(void* context, void* block, size_t size) {
  Thread* t = me;
  if (!t) return old(context).realloc(old(context).context, block, size);
  const int64_t before = block ? size_of(block) : 0;
  void* moved = old(context).realloc(old(context).context, block, size);
  if (!moved) return moved;
  if (moved == block && before) return moved;
  if (before) gave(*t, block, before);
  return counted(t, moved);
}
void free(void* context, void* block) {
  if (Thread* t = me; t && block)
    if (const int64_t size = size_of(block)) gave(*t, block, size);
  old(context).free(old(context).context, block);
}
void* take_arena(void*, size_t size) {
  void* arena = old_arena.alloc(old_arena.context, size);
  if (arena) add_region(uintptr_t(arena), uintptr_t(arena) + size);
  return arena;
}
void give_arena(void*, void* arena, size_t size) { old_arena.free(old_arena.context, arena, size); }

// Whether the allocator's small blocks lie in pools as we know them. A few are tried: the probe may have put one
// elsewhere.
bool are_known(const Allocator& a) {
  for (int i = 0; i < 3; ++i) {
    void* block = a.malloc(a.context, 100);
    const int64_t size = block ? size_of(block) : 0;
    a.free(a.context, block);
    if (size == 112) return true;
  }
  return false;
}
bool passes_on(const Allocator& a) {  // PYTHONMALLOC=malloc: the hooks see every block
  Thread* t = new_thread();
  if (!t) return false;
  Thread* before = me;
  t->blocks = 0;
  me = t;
  a.free(a.context, a.malloc(a.context, 100));
  me = before;
  const bool seen = t->blocks == 1;
  memset(static_cast<void*>(t), 0, offsetof(Thread, lines));
  Locked locked(changing);
  t->next_free = free_threads;
  free_threads = t;
  return seen;
}

bool counts_small = false;

void start() {
  counts_small = false;
  pool_bytes = 0;
  Allocator now[kObject + 1];
  for (int domain : {kMem, kObject}) py.get_allocator(domain, &now[domain]);
  if (passes_on(now[kObject])) {
    counts_small = true;
    return;
  }
  if (!glibc_below) return;
  read_regions();
  for (size_t bytes : {size_t{16384}, size_t{4096}}) {
    pool_bytes = bytes;
    if (are_known(now[kObject]) && are_known(now[kMem])) break;
    pool_bytes = 0;
  }
  if (!pool_bytes) return;
  counts_small = true;
  py.get_arena_allocator(&old_arena);
  ArenaAllocator arena{nullptr, take_arena, give_arena};
  py.set_arena_allocator(&arena);
  for (int domain : {kMem, kObject}) {
    old_of[domain] = now[domain];
    Allocator ours{&old_of[domain], malloc, calloc, realloc, free};
    py.set_allocator(domain, &ours);
  }
}

void stop() {
  if (!pool_bytes) return;
  ArenaAllocator arena;
  py.get_arena_allocator(&arena);
  if (arena.alloc == take_arena) py.set_arena_allocator(&old_arena);
  for (int domain : {kMem, kObject}) {
    Allocator now;
    py.get_allocator(domain, &now);
    if (now.malloc == malloc && now.context == &old_of[domain]) py.set_allocator(domain, &old_of[domain]);
  }
}

}  // namespace pools

// ---- resident memory ----
uint64_t coarse_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}
int64_t resident(const Thread& t) {
  char text[64];
  const long n = t.statm >= 0 ? syscall(SYS_pread64, t.statm, text, sizeof text - 1, 0L) : 0;
  if (n <= 0) return -1;
  text[n] = 0;
  const char* c = strchr(text, ' ');
  int64_t pages = 0;
  for (c = c ? c + 1 : text; *c >= '0' && *c <= '9'; ++c) pages = pages * 10 + (*c - '0');
  return pages * int64_t(sys::kPageSize);
}
void look(Thread& t) {
  const uint64_t now = coarse_ns();
  if (now == t.looked_at) return;
  t.looked_at = now;
  const int64_t bytes = resident(t);
  if (bytes > t.resident_peak) t.resident_peak = bytes;
  if (relocations::modules_changed()) relocations::change(functions, kFunctions);
}

// ---- lines ----
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

inline void close_line(Thread& t, Activation& a) {
  a.line_peak = larger(a.line_peak, t.peak);
  a.peak = larger(a.peak, a.line_peak);
  if (LineOfCode* line = a.line) {
    line->after = t.net;
    line->change += t.net - a.net;
    line->taken += t.taken - a.taken;
    line->given += t.given - a.given;
    line->blocks += t.blocks - a.blocks;
    line->peak = larger(line->peak, a.line_peak);
    a.line = nullptr;
  }
}
inline void open_line(Thread& t, Activation& a, int number, bool hit) {
  const int index = number - a.first;
  a.line = index >= 0 && index < a.count ? &a.lines[index] : nullptr;
  a.net = t.net;
  a.taken = t.taken;
  a.given = t.given;
  a.blocks = t.blocks;
  a.line_peak = t.peak = t.net;
  if (a.line) {
    if (!a.line->hits) {
      a.line->before = t.net;
      a.line->peak = t.net;
    }
    a.line->hits += hit;
  }
}

LineOfCode* lines_of(Thread& t, uint32_t number) {
  if (!t.lines[number])
    t.lines[number] = static_cast<LineOfCode*>(sys::map_private(size_t(codes[number].count) * sizeof(LineOfCode)));
  return t.lines[number];
}

inline Activation* top(Thread& t) { return t.depth && t.depth <= kLinesMostDepth ? &t.stack[t.depth - 1] : nullptr; }

// False: this code is not profiled.
bool begin_call(Thread& t, Object* code, int line) {
  const uint32_t number = places[place_of(code)];
  if (!number) return false;
  if (Activation* caller = top(t)) caller->line_peak = larger(caller->line_peak, t.peak);
  if (++t.depth > kLinesMostDepth) {
    ++t.too_deep;
    return true;
  }
  Activation& a = t.stack[t.depth - 1];
  a = {};
  a.code = code;
  a.first = codes[number - 1].first;
  a.count = codes[number - 1].count;
  a.lines = lines_of(t, number - 1);
  if (!a.lines) a.count = 0;
  a.peak = t.net;
  open_line(t, a, line, false);
  return true;
}
void end_call(Thread& t) {
  if (t.depth > kLinesMostDepth) {
    --t.depth;
    return;
  }
  Activation& a = t.stack[t.depth - 1];
  close_line(t, a);
  const int64_t peak = a.peak;
  --t.depth;
  if (Activation* caller = top(t)) caller->line_peak = larger(caller->line_peak, peak);
  t.top_peak = larger(t.top_peak, peak);
  t.peak = t.net;
}
inline void begin_line(Thread& t, Activation& a, int line) {
  close_line(t, a);
  look(t);
  open_line(t, a, line, true);
}

int trace(Object*, Object* frame, int what, Object*) {
  Thread* t = me;
  if (!t) return 0;
  Activation* a = top(*t);
  if (what == kTraceLine) {
    if (!a || a->strangers) return 0;
    Object* code = py.code_of(frame);
    if (code == a->code) begin_line(*t, *a, py.line_of(frame));
    py.drop(code);
  } else if (what == kTraceCall) {
    if (py.version >= 311)
      is_ghost(*t, static_cast<char*>(frame) - 16,
               pools::pool_bytes ? pools::size_of(static_cast<char*>(frame) - 16) : 0);
    Object* code = py.code_of(frame);
    if (!begin_call(*t, code, py.line_of(frame)) && a) ++a->strangers;
    py.drop(code);
  } else if (what == kTraceReturn) {
    if (t->depth > kLinesMostDepth) {  // only profiled calls count there
      Object* code = py.code_of(frame);
      if (places[place_of(code)]) end_call(*t);
      py.drop(code);
    } else if (a && a->strangers) {
      --a->strangers;
    } else if (a) {
      Object* code = py.code_of(frame);
      if (code == a->code) end_call(*t);
      py.drop(code);
    }
    if (py.version >= 311) t->ghost = static_cast<char*>(frame) - 16;
  }
  return 0;
}

// ---- functions for Python ----
Object* none() {
  py.take(py.none);
  return py.none;
}
// One call more; 0: this would be the outermost, and nothing is done: the caller opens.
Object* enter(Object*, Object*) { return py.from_long(me && me->calls ? ++me->calls : 0); }
bool open(bool with_trace) {
  Thread* t = new_thread();
  if (!t) return false;
  memset(static_cast<void*>(t), 0, offsetof(Thread, lines));
  t->calls = 1;
  t->statm = int(syscall(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC));
  t->resident_begin = t->resident_peak = resident(*t);
  t->looked_at = coarse_ns();
  if (with_trace && py.version < 312) py.set_trace(trace, nullptr);
  t->began = sys::now_ns();
  me = t;
  return true;
}
int leave_in(Thread* t) {
  if (--t->calls > 0) return t->calls;
  if (me == t) me = nullptr;
  ended = t;
  t->resident_end = resident(*t);
  if (t->resident_end > t->resident_peak) t->resident_peak = t->resident_end;
  if (t->statm >= 0) syscall(SYS_close, t->statm);
  t->statm = -1;
  t->began = sys::now_ns() - t->began;
  t->top_peak = larger(t->top_peak, t->peak);
  return 0;
}
Object* leave(Object*, Object*) { return py.from_long(me ? leave_in(me) : -1); }

Object* on_line(Object*, Object* const* arguments, int64_t count) {
  Thread* t = me;
  if (!t || count < 2) return none();
  Activation* a = top(*t);
  if (!a || a->code != arguments[0]) return none();
  if (pools::pool_bytes) is_ghost(*t, arguments[1], 32);
  begin_line(*t, *a, int(py.as_long(arguments[1])));
  return none();
}
Object* on_begin(Object*, Object* const* arguments, int64_t count) {
  Thread* t = me;
  if (!t || count < 2) return none();
  if (pools::pool_bytes) is_ghost(*t, arguments[1], 32);
  const int offset = int(py.as_long(arguments[1]));
  if (places[place_of(arguments[0])]) begin_call(*t, arguments[0], py.line_at(arguments[0], offset));
  return none();
}
Object* on_end(Object*, Object* const* arguments, int64_t count) {
  Thread* t = me;
  if (!t || count < 2 || !t->depth) return none();
  if (pools::pool_bytes) is_ghost(*t, arguments[1], 32);
  const Activation* a = top(*t);
  if (a ? a->code == arguments[0] : places[place_of(arguments[0])] != 0) end_call(*t);
  return none();
}

Definition methods[kLinesFunctions] = {
    {"enter", reinterpret_cast<void*>(enter), kNoArguments, nullptr},
    {"leave", reinterpret_cast<void*>(leave), kNoArguments, nullptr},
    {"on_line", reinterpret_cast<void*>(on_line), kFastCall, nullptr},
    {"on_begin", reinterpret_cast<void*>(on_begin), kFastCall, nullptr},
    {"on_end", reinterpret_cast<void*>(on_end), kFastCall, nullptr},
};

template <class F>
bool find(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  return function != nullptr;
}
bool find_python(void* handle, int version) {
  py = {};
  py.version = version;
  if (version < 312 &&
      !(find(handle, "PyFrame_GetCode", py.code_of) && find(handle, "PyFrame_GetLineNumber", py.line_of) &&
        find(handle, "PyEval_SetTrace", py.set_trace)))
    return false;
  return find(handle, "PyLong_AsLong", py.as_long) && find(handle, "PyLong_FromLong", py.from_long) &&
         find(handle, "PyCFunction_NewEx", py.new_function) && find(handle, "Py_IncRef", py.take) &&
         find(handle, "Py_DecRef", py.drop) && find(handle, "_Py_NoneStruct", py.none) &&
         find(handle, "PyCode_Addr2Line", py.line_at) && find(handle, "PyMem_GetAllocator", py.get_allocator) &&
         find(handle, "PyMem_SetAllocator", py.set_allocator) &&
         find(handle, "PyObject_GetArenaAllocator", py.get_arena_allocator) &&
         find(handle, "PyObject_SetArenaAllocator", py.set_arena_allocator);
}
// What the hooks pass calls on to. `below`: the probe, whose hooks are in the tables now.
bool find_malloc(void* below) {
  const auto definition_of = [below](const char* name, const void* in) {
    return below ? dlsym(below, name) : relocations::definition_of(name, in);
  };
  void* first = definition_of("malloc", nullptr);
  if (!first) return false;
  size_t i = 0;
#define X(name)                                      \
  functions[i].real = definition_of(#name, nullptr); \
  next::name = reinterpret_cast<decltype(next::name)>(functions[i++].real);
  MP_LINES_HOOKS(X)
#undef X
  next::malloc_usable_size = reinterpret_cast<decltype(next::malloc_usable_size)>(
      definition_of("malloc_usable_size", below ? nullptr : first));
  Dl_info of_malloc{}, of_libc{};
  dladdr(relocations::definition_of("malloc", nullptr), &of_malloc);
  dladdr(relocations::definition_of("gnu_get_libc_version", nullptr), &of_libc);
  glibc_below = below || of_malloc.dli_fbase == of_libc.dli_fbase || dlsym(RTLD_DEFAULT, "millpond_probe_version");
  return next::malloc && next::calloc && next::realloc && next::free && next::malloc_usable_size;
}

bool started = false;

}  // namespace
}  // namespace millpond::probe::lines

using namespace millpond::probe;
using namespace millpond::probe::lines;

#define MP_EXPORT extern "C" __attribute__((visibility("default")))

MP_EXPORT int millpond_lines_version(void) { return kLinesVersion; }

MP_EXPORT int millpond_lines_start(void* python, void* below, int version) {
  if (started) return kLinesStarted;
  if (!find_python(python, version)) return kLinesNoPython;
  if (!find_malloc(below)) return kLinesNoMalloc;
  relocations::change(functions, kFunctions);
  pools::start();
  started = true;
  return kLinesStarted;
}

MP_EXPORT void millpond_lines_stop(void) {
  if (!started) return;
  pools::stop();
  relocations::restore();
  started = false;
}

MP_EXPORT int millpond_lines_small(void) { return pools::counts_small; }

MP_EXPORT int millpond_lines_add(void* code, int first, int count) {
  const uint32_t place = place_of(code);
  if (places[place]) return 0;
  if (code_count == kLinesMostCodes || count <= 0) return 1;
  codes[code_count] = {code, first, count};
  places[place] = uint16_t(++code_count);
  return 0;
}

MP_EXPORT void* millpond_lines_function(int which) {
  return which >= 0 && which < kLinesFunctions && py.new_function ? py.new_function(&methods[which], nullptr, nullptr)
                                                                  : nullptr;
}

MP_EXPORT int millpond_lines_open(int with_trace) { return open(with_trace != 0) ? 0 : 1; }
MP_EXPORT void millpond_lines_untrace(void) {
  if (py.set_trace) py.set_trace(nullptr, nullptr);
}
MP_EXPORT void* millpond_lines_here(void) { return me ? me : ended; }

MP_EXPORT int millpond_lines_leave_in(void* here) { return leave_in(static_cast<Thread*>(here)); }

MP_EXPORT int millpond_lines_take(void* here, void* code, LineOfCode* out, int count) {
  const uint32_t number = places[place_of(code)];
  const LineOfCode* from = number ? static_cast<Thread*>(here)->lines[number - 1] : nullptr;
  if (!from) return 0;
  const int there = codes[number - 1].count;
  memcpy(out, from, size_t(count < there ? count : there) * sizeof *out);
  return 1;
}

MP_EXPORT void millpond_lines_totals(void* here, LinesTotals* out) {
  const Thread& t = *static_cast<Thread*>(here);
  *out = {.taken = t.taken,
          .given = t.given,
          .blocks = t.blocks,
          .peak = t.top_peak,
          .kept = t.net,
          .resident_begin = t.resident_begin,
          .resident_end = t.resident_end,
          .resident_peak = t.resident_peak,
          .nanoseconds = int64_t(t.began),
          .too_deep = t.too_deep,
          .frees_unknown = !pools::counts_small};
}

MP_EXPORT void millpond_lines_release(void* here) {
  Thread* t = static_cast<Thread*>(here);
  for (uint32_t i = 0; i < code_count; ++i) {
    if (t->lines[i]) sys::unmap(t->lines[i], size_t(codes[i].count) * sizeof(LineOfCode));
    t->lines[i] = nullptr;
  }
  Locked locked(changing);
  t->next_free = free_threads;
  free_threads = t;
}
