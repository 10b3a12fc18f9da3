// System calls made directly: the names of the C library may lead into a hook, here or in another preloaded library.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace millpond::probe::sys {

inline constexpr size_t kPageSize = 4096;
inline constexpr int kRead = 1, kWrite = 2, kMapShared = 1, kMapPrivate = 2, kMapFixed = 0x10, kMapAnonymous = 0x20;
inline constexpr int kDontNeed = 4, kWipeOnFork = 18, kKeepOnFork = 19, kPopulateWrite = 23;

inline void* map(size_t size, int protection, int flags, int fd) {
  const long p = syscall(SYS_mmap, nullptr, size, protection, flags, fd, 0L);
  return p == -1 ? nullptr : reinterpret_cast<void*>(p);
}
inline void* map_private(size_t size) { return map(size, kRead | kWrite, kMapPrivate | kMapAnonymous, -1); }
// At another place, instead of what is there.
inline void* move_to(void* from, void* to, size_t size) {
  const long p = syscall(SYS_mremap, from, size, size, 3 /* may move, fixed */, to);
  return p == -1 ? nullptr : reinterpret_cast<void*>(p);
}
// Empty memory of our own in place of what is there.
inline bool replace_by_memory(void* at, size_t size) {
  return syscall(SYS_mmap, at, size, kRead | kWrite, kMapPrivate | kMapAnonymous | kMapFixed | 0x4000 /* no reserve */,
                 -1, 0L) != -1;
}
inline void unmap(void* at, size_t size) { syscall(SYS_munmap, at, size); }
// 0, or what was wrong.
inline int advise(void* at, size_t size, int advice) { return syscall(SYS_madvise, at, size, advice) == 0 ? 0 : errno; }

// Whole pages of memory of our own become zero again, and cost nothing until they are used.
inline void wipe(void* at, size_t size) { advise(at, size, kDontNeed); }

// Of this process, in bytes, as /proc/self/statm tells: all that is resident, and of it files and shared memory. Zeros
// where it cannot be read.
struct Resident {
  uint64_t all, shared;
};
inline Resident resident() {
  const int fd = int(syscall(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return {};
  char text[128];
  const long size = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  uint64_t field[3] = {};  // pages: mapped, resident, shared
  int at = 0;
  for (long i = 0; i < size && at < 3; ++i) {
    if (text[i] >= '0' && text[i] <= '9')
      field[at] = field[at] * 10 + uint64_t(text[i] - '0');
    else
      ++at;
  }
  return {field[1] * kPageSize, field[2] * kPageSize};
}

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

}  // namespace millpond::probe::sys
