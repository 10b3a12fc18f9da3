#include "probe/early.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace millpond::probe::early {
namespace {

void* const kMapFailed = reinterpret_cast<void*>(-1);
constexpr size_t kHeader = 16;  // the size, in front of a block
alignas(64) char space[16384];
size_t used = 0;

size_t size_of(const void* block) {
  size_t size;
  memcpy(&size, static_cast<const char*>(block) - kHeader, sizeof size);
  return size;
}
size_t need_of(size_t size) { return (size + kHeader + 15) & ~size_t{15}; }

void* block_of(size_t size) {
  const size_t need = need_of(size);
  if (need < size) return nullptr;
  const size_t at = __atomic_fetch_add(&used, need, __ATOMIC_RELAXED);
  if (at > sizeof space || need > sizeof space - at) return nullptr;
  memcpy(space + at, &size, sizeof size);
  if (taken) taken(space + at + kHeader);
  return space + at + kHeader;
}

}  // namespace

bool holds(const void* block) { return block >= space && block < space + sizeof space; }

void each(void (*call)(const void* block)) {
  for (size_t at = 0; at + kHeader < used && at + kHeader < sizeof space; at += need_of(size_of(space + at + kHeader)))
    call(space + at + kHeader);
}

void* malloc(size_t size) { return block_of(size); }
void* calloc(size_t n, size_t size) { return size && n > sizeof space / size ? nullptr : block_of(n * size); }
void* realloc(void* block, size_t size) {
  void* to = room(size);
  if (to && block) memcpy(to, block, size_of(block) < size ? size_of(block) : size);
  return to;
}
void free(void*) {}
void* memalign(size_t, size_t) { return nullptr; }
void* aligned_alloc(size_t, size_t) { return nullptr; }
void* valloc(size_t) { return nullptr; }
void* pvalloc(size_t) { return nullptr; }
int posix_memalign(void**, size_t, size_t) { return ENOMEM; }
// The system's own calls need no library.
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

}  // namespace millpond::probe::early
