#include "probe/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/live.h"

namespace millpond::probe {
namespace {

void* const kMapFailed = reinterpret_cast<void*>(-1);
__attribute__((tls_model("initial-exec"))) __thread bool looking_up = false;

constexpr size_t kHeader = 16;  // the size, in front of a block
alignas(64) char early[16384];
size_t early_used = 0;

size_t early_size(const void* block) {
  size_t size;
  memcpy(&size, static_cast<const char*>(block) - kHeader, sizeof size);
  return size;
}
size_t early_need(size_t size) { return (size + kHeader + 15) & ~size_t{15}; }
void* early_block(size_t size) {
  const size_t need = early_need(size);
  if (need < size) return nullptr;
  const size_t at = __atomic_fetch_add(&early_used, need, __ATOMIC_RELAXED);
  if (at > sizeof early || need > sizeof early - at) return nullptr;
  memcpy(early + at, &size, sizeof size);
  live::mark(early + at + kHeader);
  return early + at + kHeader;
}

// What this thread gets while it is inside dlsym, and for good where the system has no such function.
namespace without {
void* malloc(size_t size) { return early_block(size); }
void* calloc(size_t n, size_t size) { return size && n > sizeof early / size ? nullptr : early_block(n * size); }
void* realloc(void* block, size_t size) {
  void* p = early_block(size);
  if (p && block) memcpy(p, block, early_size(block) < size ? early_size(block) : size);
  return p;
}
void free(void*) {}
void* memalign(size_t, size_t) { return nullptr; }
void* aligned_alloc(size_t, size_t) { return nullptr; }
void* valloc(size_t) { return nullptr; }
void* pvalloc(size_t) { return nullptr; }
int posix_memalign(void**, size_t, size_t) { return ENOMEM; }
void* mmap(void* at, size_t size, int protection, int flags, int fd, long offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, fd, offset));
}
void* mmap64(void* at, size_t size, int protection, int flags, int fd, long offset) {
  return mmap(at, size, protection, flags, fd, offset);
}
int munmap(void* at, size_t size) { return int(syscall(SYS_munmap, at, size)); }
void* mremap(void* at, size_t size, size_t new_size, int flags, void* new_at) {
  return reinterpret_cast<void*>(syscall(SYS_mremap, at, size, new_size, flags, new_at));
}
int brk(void*) { return errno = ENOMEM, -1; }
void* sbrk(intptr_t) { return errno = ENOMEM, kMapFailed; }
}  // namespace without

namespace first {
#define MP_HOOK(name, result, parameters, arguments)  \
  result name parameters {                            \
    if (looking_up) return without::name arguments;   \
    look_up_real();                                   \
    return real::name arguments;                      \
  }
#include "probe/hooks.inc"
#undef MP_HOOK
}  // namespace first

void* module_of(void* function) {
  Dl_info info;
  return function && dladdr(function, &info) ? info.dli_fbase : nullptr;
}

// Where an allocator lacks these, the C library's would come after it: a block of one heap, freed into another.
void* valloc_by_alignment(size_t size) {
  void* p = nullptr;
  return real::posix_memalign(&p, 4096, size) == 0 ? p : nullptr;
}
void* pvalloc_by_alignment(size_t size) { return valloc_by_alignment((size + 4095) & ~size_t{4095}); }

struct Search {
  uintptr_t base;
  CodeRange found;
};
int find_code(dl_phdr_info* info, size_t, void* search_) {
  auto& search = *static_cast<Search*>(search_);
  if (info->dlpi_addr != search.base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (const auto& part = info->dlpi_phdr[i]; part.p_type == PT_LOAD && part.p_flags & PF_X)
      search.found = {info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
  return 1;
}

}  // namespace

namespace real {
#define MP_HOOK(name, result, parameters, arguments) result(*name) parameters = first::name;
#include "probe/hooks.inc"
#undef MP_HOOK
}  // namespace real

CodeRange allocator_code;

// Two threads may do this at once: both find the same.
void look_up_real() {
  looking_up = true;
  const int error = errno;
#define MP_HOOK(name, result, parameters, arguments)                                                  \
  {                                                                                                   \
    auto f = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));                         \
    __atomic_store_n(&real::name, f ? f : without::name, __ATOMIC_RELEASE);                           \
  }
#include "probe/hooks.inc"
#undef MP_HOOK
  void* of_malloc = module_of(reinterpret_cast<void*>(real::malloc));
  if (of_malloc && of_malloc != module_of(dlsym(RTLD_NEXT, "gnu_get_libc_version"))) {
    Search search{uintptr_t(of_malloc), {}};
    dl_iterate_phdr(find_code, &search);
    allocator_code = search.found;
    if (module_of(reinterpret_cast<void*>(real::valloc)) != of_malloc) real::valloc = valloc_by_alignment;
    if (module_of(reinterpret_cast<void*>(real::pvalloc)) != of_malloc) real::pvalloc = pvalloc_by_alignment;
  }
  errno = error;
  looking_up = false;
}

void* allocator_function(const char* name) {
  void* f = dlsym(RTLD_NEXT, name);
  return f && module_of(f) == module_of(reinterpret_cast<void*>(real::malloc)) ? f : nullptr;
}

bool is_early(const void* block) { return block >= early && block < early + sizeof early; }
void free_early(void*) {}
void* realloc_early(void* block, size_t size) {
  if (looking_up) return without::realloc(block, size);
  void* p = real::malloc(size);
  if (p) memcpy(p, block, early_size(block) < size ? early_size(block) : size);
  return p;
}
void mark_early_blocks() {
  for (size_t at = 0; at + kHeader < early_used && at + kHeader < sizeof early;
       at += early_need(early_size(early + at + kHeader)))
    live::mark(early + at + kHeader);
}

}  // namespace millpond::probe
