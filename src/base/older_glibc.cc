// For a program that carries the compiler's libraries with it (MILLPOND_STATIC). Debian 12's call two functions that
// glibc has since 2.35 and 2.36; with our own in their place the program starts with 2.34 too.
#include "base/older_glibc.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace millpond {
namespace {

struct Search {
  uintptr_t pc;
  LoadedObject* result;
};

int look(dl_phdr_info* info, size_t, void* search_) {
  auto& search = *static_cast<Search*>(search_);
  const ElfW(Phdr)* tables = nullptr;
  bool found = false;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + part.p_vaddr, to = from + part.p_memsz;
    if (part.p_type == PT_GNU_EH_FRAME) tables = &part;
    if (part.p_type != PT_LOAD) continue;
    found = found || (search.pc >= from && search.pc < to);
    begin = from < begin ? from : begin;
    end = to > end ? to : end;
  }
  if (!found) return 0;
  *search.result = {};
  search.result->begin = reinterpret_cast<void*>(begin);
  search.result->end = reinterpret_cast<void*>(end);
  if (tables) search.result->eh_frame_header = reinterpret_cast<void*>(info->dlpi_addr + tables->p_vaddr);
  return 1;
}

}  // namespace

int find_object_in_list(void* pc, LoadedObject* result) noexcept {
  Search search{uintptr_t(pc), result};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

}  // namespace millpond

// The unwinder asks where the tables of a piece of code are. The loader's own answer is quicker, where it has one.
extern "C" __attribute__((visibility("hidden"), used)) int millpond_find_object(void* pc,
                                                                                millpond::LoadedObject* result) noexcept
    asm("_dl_find_object");
extern "C" int millpond_find_object(void* pc, millpond::LoadedObject* result) noexcept {
  using Find = int (*)(void*, millpond::LoadedObject*);
  static const Find of_loader = reinterpret_cast<Find>(dlsym(RTLD_NEXT, "_dl_find_object"));
  return of_loader ? of_loader(pc, result) : millpond::find_object_in_list(pc, result);
}

// std::random_device asks for this one.
extern "C" __attribute__((visibility("hidden"), used)) uint32_t millpond_random() noexcept asm("arc4random");
extern "C" uint32_t millpond_random() noexcept {
  uint32_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != ssize_t(sizeof bits))
    if (errno != EINTR) std::abort();
  return bits;
}
