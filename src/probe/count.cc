// libmillpond_count.so: see count.h. No exceptions, no iostream, no malloc, no lock. sys/mman.h and malloc.h stay out,
// because they declare some of the hooks in another way (mremap with "...").
#include "probe/count.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/early.h"

namespace {

constexpr size_t kPageSize = 4096;
void* const kMapFailed = reinterpret_cast<void*>(-1);

// ---- the real functions ----
namespace real {
#define MP_HOOK(name, result, parameters, arguments) result(*name) parameters = nullptr;
#include "probe/hooks.inc"
#undef MP_HOOK
size_t (*malloc_usable_size)(void*) = nullptr;
}  // namespace real
bool found = false;

// Calls inside a hook of ours, by this thread. initial-exec: reaching it must not allocate.
__attribute__((tls_model("initial-exec"))) thread_local int depth = 0;
__attribute__((tls_model("initial-exec"))) thread_local bool looking_up = false;

// Two threads may do this at once: both find the same. An allocator that lacks a function (mmap64, pvalloc) leaves it
// null.
void look_up() {
  looking_up = true;
  const int error = errno;
#define MP_HOOK(name, result, parameters, arguments) \
  real::name = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));
#include "probe/hooks.inc"
#undef MP_HOOK
  real::malloc_usable_size = reinterpret_cast<size_t (*)(void*)>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  errno = error;
  looking_up = false;
  __atomic_store_n(&found, true, __ATOMIC_RELEASE);
}

// ---- the counters ----
alignas(kPageSize) CountPage own{};  // until the shared page is there, and in children
CountPage* page = &own;

CountPage& counters() { return *__atomic_load_n(&page, __ATOMIC_RELAXED); }
void add(CountOf& c, uint64_t bytes, uint64_t calls = 1) {
  __atomic_fetch_add(&c.calls, calls, __ATOMIC_RELAXED);
  if (bytes) __atomic_fetch_add(&c.bytes, bytes, __ATOMIC_RELAXED);
}
void called(CountHook hook, uint64_t bytes) { add(counters().of[hook], bytes); }
void took(void* block) {
  if (block) add(counters().heap_taken, real::malloc_usable_size(block));
}
size_t whole_pages(size_t size) { return (size + kPageSize - 1) & ~(kPageSize - 1); }

// ---- what each hook counts ----
namespace count {
void* malloc(size_t size) {
  void* p = real::malloc(size);
  called(kCount_malloc, size);
  took(p);
  return p;
}
void* calloc(size_t n, size_t size) {
  void* p = real::calloc(n, size);
  called(kCount_calloc, p ? n * size : 0);  // the product may not fit when it failed
  took(p);
  return p;
}
void* realloc(void* block, size_t size) {
  const size_t before = block ? real::malloc_usable_size(block) : 0;
  void* p = real::realloc(block, size);
  called(kCount_realloc, size);
  if (block && (p || size == 0)) add(counters().heap_given, before);
  took(p);
  return p;
}
void free(void* block) {
  const size_t size = block ? real::malloc_usable_size(block) : 0;
  called(kCount_free, size);
  if (block) add(counters().heap_given, size);
  real::free(block);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  const int error = real::posix_memalign(block, alignment, size);
  called(kCount_posix_memalign, size);
  if (error == 0) took(*block);
  return error;
}
void* aligned_alloc(size_t alignment, size_t size) {
  void* p = real::aligned_alloc(alignment, size);
  called(kCount_aligned_alloc, size);
  took(p);
  return p;
}
void* memalign(size_t alignment, size_t size) {
  void* p = real::memalign(alignment, size);
  called(kCount_memalign, size);
  took(p);
  return p;
}
void* valloc(size_t size) {
  void* p = real::valloc(size);
  called(kCount_valloc, size);
  took(p);
  return p;
}
void* pvalloc(size_t size) {
  void* p = real::pvalloc(size);
  called(kCount_pvalloc, size);
  took(p);
  return p;
}
void* mmap(void* at, size_t size, int protection, int flags, int fd, long offset) {
  void* p = real::mmap(at, size, protection, flags, fd, offset);
  called(kCount_mmap, size);
  if (p != kMapFailed) add(counters().mapped, whole_pages(size));
  return p;
}
void* mmap64(void* at, size_t size, int protection, int flags, int fd, long offset) {
  void* p = real::mmap64(at, size, protection, flags, fd, offset);
  called(kCount_mmap64, size);
  if (p != kMapFailed) add(counters().mapped, whole_pages(size));
  return p;
}
int munmap(void* at, size_t size) {
  const int error = real::munmap(at, size);
  called(kCount_munmap, size);
  if (error == 0) add(counters().unmapped, whole_pages(size));
  return error;
}
void* mremap(void* at, size_t size, size_t new_size, int flags, void* new_at) {
  void* p = real::mremap(at, size, new_size, flags, new_at);
  called(kCount_mremap, new_size);
  if (p == kMapFailed) return p;
  const size_t before = whole_pages(size), after = whole_pages(new_size);
  if (after > before) add(counters().mapped, after - before);
  if (after < before) add(counters().unmapped, before - after);
  return p;
}
int brk(void* end) {
  char* before = static_cast<char*>(real::sbrk(0));
  const int error = real::brk(end);
  const bool grew = error == 0 && static_cast<char*>(end) > before;
  called(kCount_brk, grew ? uint64_t(static_cast<char*>(end) - before) : 0);
  return error;
}
void* sbrk(intptr_t by) {
  void* p = real::sbrk(by);
  called(kCount_sbrk, by > 0 && p != kMapFailed ? uint64_t(by) : 0);
  return p;
}
}  // namespace count

// ---- before the real functions are known (this thread is inside dlsym), and for blocks from that time ----
namespace early = millpond::probe::early;

// A block from before goes back to where it came from, or is moved out of there by realloc.
template <class... T>
bool of_early_block(T...) {
  return false;
}
bool of_early_block(void* block) { return early::holds(block); }
bool of_early_block(void* block, size_t) { return early::holds(block); }

struct Inside {
  Inside() { ++depth; }
  ~Inside() { --depth; }
};

// ---- the shared page ----
void count_alone() {  // in a forked child
  memset(&own, 0, sizeof own);
  own.version = kCountVersion;
  own.pid = getpid();
  __atomic_store_n(&page, &own, __ATOMIC_RELEASE);
}

CountPage* shared_page() {
  const char* name = getenv("MILLPOND_COUNT");
  if (!name || !*name) return nullptr;
  const int fd = int(syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (fd < 0) return nullptr;
  void* p = kMapFailed;
  if (syscall(SYS_ftruncate, fd, long{kCountPageBytes}) == 0)
    p = reinterpret_cast<void*>(
        syscall(SYS_mmap, nullptr, size_t{kCountPageBytes}, 3 /* read, write */, 1 /* shared */, fd, 0L));
  syscall(SYS_close, fd);
  return p == kMapFailed ? nullptr : static_cast<CountPage*>(p);
}

// After the C library is ready (its environment is not, in the first calls); what was counted so far moves along.
__attribute__((constructor(101))) void start() {
  if (!__atomic_load_n(&found, __ATOMIC_ACQUIRE)) look_up();
  own.version = kCountVersion;
  own.pid = getpid();
  pthread_atfork(nullptr, nullptr, count_alone);
  CountPage* shared = shared_page();
  if (!shared) return;
  int64_t nobody = 0;
  if (!__atomic_compare_exchange_n(&shared->pid, &nobody, own.pid, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    if (nobody != own.pid) {  // a child of the process it belongs to
      syscall(SYS_munmap, shared, size_t{kCountPageBytes});
      return;
    }
    memset(&shared->heap_taken, 0, sizeof *shared - offsetof(CountPage, heap_taken));  // this process, before exec
  }
  __atomic_store_n(&page, shared, __ATOMIC_RELEASE);
  auto* from = &own.heap_taken;
  auto* to = &shared->heap_taken;
  for (size_t i = 0; i < 4 + size_t{kCountHooks}; ++i)
    if (from[i].calls) add(to[i], from[i].bytes, from[i].calls);
  __atomic_store_n(&shared->version, uint64_t{kCountVersion}, __ATOMIC_RELEASE);
}

}  // namespace

namespace millpond::probe::early {
void (*const taken)(const void*) = nullptr;
void* (*const room)(size_t) = [](size_t size) { return looking_up ? malloc(size) : ::real::malloc(size); };
}  // namespace millpond::probe::early

static_assert(offsetof(CountPage, of) == offsetof(CountPage, heap_taken) + 4 * sizeof(CountOf),
              "start() walks them as one array");

#define MP_VISIBLE extern "C" __attribute__((visibility("default")))

MP_VISIBLE const CountPage* millpond_count_page(void) { return &counters(); }

#define MP_HOOK(name, result, parameters, arguments)                          \
  MP_VISIBLE result name parameters noexcept {                                \
    if (looking_up || of_early_block arguments) return early::name arguments; \
    if (!__atomic_load_n(&found, __ATOMIC_ACQUIRE)) look_up();                \
    if (depth) return real::name arguments;                                   \
    Inside inside;                                                            \
    return count::name arguments;                                             \
  }
#include "probe/hooks.inc"
#undef MP_HOOK
