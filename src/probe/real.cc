#include "probe/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#include "probe/early.h"
#include "probe/enter.h"
#include "probe/live.h"
#include "probe/relocations.h"
#include "probe/shared.h"

namespace millpond::probe {
namespace {

__attribute__((tls_model("initial-exec"))) __thread bool looking_up = false;

namespace first {
#define MP_HOOK(name, result, parameters, arguments) \
  result name parameters {                           \
    if (looking_up) return early::name arguments;    \
    look_up_real();                                  \
    return real::name arguments;                     \
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
uint64_t allocator_flags = 0;

// Two threads may do this at once: both find the same.
void look_up_real() {
  looking_up = true;
  const int error = errno;
#define MP_HOOK(name, result, parameters, arguments)                          \
  {                                                                           \
    auto f = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name)); \
    __atomic_store_n(&real::name, f ? f : early::name, __ATOMIC_RELEASE);     \
  }
#include "probe/hooks.inc"
#undef MP_HOOK
  void* of_malloc = module_of(reinterpret_cast<void*>(real::malloc));
  if (of_malloc && of_malloc != module_of(dlsym(RTLD_NEXT, "gnu_get_libc_version"))) {
    Search search{uintptr_t(of_malloc), {}};
    dl_iterate_phdr(find_code, &search);
    allocator_code = search.found;
    // An allocator that brings operator new along does not come by malloc for it.
    allocator_flags = kAllocatorOther | (module_of(dlsym(RTLD_DEFAULT, "_Znwm")) == of_malloc ? kAllocatorHidden : 0);
    if (module_of(reinterpret_cast<void*>(real::valloc)) != of_malloc) real::valloc = valloc_by_alignment;
    if (module_of(reinterpret_cast<void*>(real::pvalloc)) != of_malloc) real::pvalloc = pvalloc_by_alignment;
  }
  errno = error;
  looking_up = false;
}

void look_up_real_of_program() {
#define MP_HOOK(name, result, parameters, arguments)                                      \
  if (auto f = reinterpret_cast<result(*) parameters>(relocations::definition_of(#name))) \
    __atomic_store_n(&real::name, f, __ATOMIC_RELEASE);
#include "probe/hooks.inc"
#undef MP_HOOK
  void* of_malloc = module_of(reinterpret_cast<void*>(real::malloc));
  if (of_malloc == module_of(relocations::definition_of("gnu_get_libc_version"))) return;
  Search search{uintptr_t(of_malloc), {}};
  dl_iterate_phdr(find_code, &search);
  allocator_code = search.found;
  relocations::set_foreign_allocator(reinterpret_cast<void*>(real::malloc));
  if (module_of(reinterpret_cast<void*>(real::valloc)) != of_malloc) real::valloc = valloc_by_alignment;
  if (module_of(reinterpret_cast<void*>(real::pvalloc)) != of_malloc) real::pvalloc = pvalloc_by_alignment;
}

void* allocator_function(const char* name) {
  if (!is_preloaded()) return relocations::definition_of(name, reinterpret_cast<void*>(real::malloc));
  void* f = dlsym(RTLD_NEXT, name);
  return f && module_of(f) == module_of(reinterpret_cast<void*>(real::malloc)) ? f : nullptr;
}

namespace early {
void (*const taken)(const void*) = live::mark;  // the filter is all that free looks at
void* (*const room)(size_t) = [](size_t size) { return looking_up ? malloc(size) : real::malloc(size); };
}  // namespace early

}  // namespace millpond::probe
