#include "probe/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "probe/system.h"

namespace millpond::probe::file {

uint32_t state = kStarting;
::Shared* shared = nullptr;
uint32_t life = 1;
uint64_t reserve_ns = 0;

namespace {

char folder[4096 - 64];  // the environment may change under us: it is read once

alignas(sys::kPageSize) uint64_t stamp_page[sys::kPageSize / sizeof(uint64_t)];
uint64_t* stamp = nullptr;  // in that page, which is zero after every fork; null: the system has no such pages

constexpr size_t kPart = 16384;  // backed at a time
constexpr size_t kParts = (kSharedBytes + kPart - 1) / kPart;
uint8_t backed[kParts], counted[kParts];
uint64_t taken = 0;  // bytes of counted parts
Room* room = nullptr;

bool take_from(uint64_t& taken_of_all, const uint64_t& limit, uint64_t bytes) {
  if (__atomic_add_fetch(&taken_of_all, bytes, __ATOMIC_RELAXED) <= __atomic_load_n(&limit, __ATOMIC_RELAXED))
    return true;
  __atomic_fetch_sub(&taken_of_all, bytes, __ATOMIC_RELAXED);
  return false;
}

// Whether this part may be taken: of what is promised to this process, or else of the pool.
bool may_take(size_t part) {
  if (__atomic_exchange_n(&counted[part], 1, __ATOMIC_RELAXED)) return true;
  const bool promised = __atomic_add_fetch(&taken, kPart, __ATOMIC_RELAXED) <= kPromised;
  if (promised || !room) return true;
  if (take_from(room->pool_taken, room->pool_limit, kPart)) {
    add(shared->pool_bytes, kPart);
    return true;
  }
  __atomic_fetch_sub(&taken, kPart, __ATOMIC_RELAXED);
  __atomic_store_n(&counted[part], 0, __ATOMIC_RELAXED);
  return false;
}

void map_room() {
  char name[4096];
  snprintf(name, sizeof name, "%s/room", folder);
  const int fd = int(syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC));
  if (fd < 0) return;
  const bool whole = syscall(SYS_lseek, fd, 0L, SEEK_END) >= long{sizeof(Room)};
  if (whole) room = static_cast<Room*>(sys::map(sys::kPageSize, sys::kRead | sys::kWrite, sys::kMapShared, fd));
  syscall(SYS_close, fd);
}

// In the place of the parent's file, if there is one.
::Shared* make(const char* name) {
  const int fd = int(syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd < 0) return nullptr;
  void* p = nullptr;
  if (syscall(SYS_ftruncate, fd, long{kSharedBytes}) == 0)
    p = sys::map(kSharedBytes, sys::kRead | sys::kWrite, sys::kMapShared, fd);
  if (p && shared) p = sys::move_to(p, shared, kSharedBytes);
  const int error = errno;
  syscall(SYS_close, fd);
  if (!p) syscall(SYS_unlink, name);
  errno = error;
  return static_cast<::Shared*>(p);
}

void count_unseen(int error) {
  if (error == ENOSPC || error == EDQUOT) return add(room->refused);
  if (error == EMFILE || error == ENFILE) return add(room->without_descriptor);
  add(room->unopened);
  __atomic_store_n(&room->unopened_error, uint64_t(error), __ATOMIC_RELAXED);
}

// From here on nothing that this process writes reaches a file; where shared lies stays memory of ours.
void discard() { sys::replace_by_memory(shared, kSharedBytes); }

void fill_in() {
  struct stat space{};
  if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &space, 0) == 0) shared->pid_space = space.st_ino;
  shared->bytes = kSharedBytes;
  shared->pid = int32_t(getpid());
  shared->parent = int32_t(getppid());
  shared->start_ns = sys::now_ns();
}

}  // namespace

bool is_open() { return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == kOpen && (!stamp || *stamp); }

bool reserve(const void* at, size_t size) {
  const size_t begin = size_t(static_cast<const char*>(at) - reinterpret_cast<const char*>(shared));
  for (size_t part = begin / kPart; part <= (begin + size - 1) / kPart; ++part) {
    if (__atomic_load_n(&backed[part], __ATOMIC_RELAXED)) continue;
    const size_t from = part * kPart, left = kSharedBytes - from;
    const uint64_t began = sys::now_ns();
    char* begin_of_part = reinterpret_cast<char*>(shared) + from;
    const bool allowed = may_take(part);
    const int error = allowed ? sys::advise(begin_of_part, left < kPart ? left : kPart, sys::kPopulateWrite) : 0;
    add(reserve_ns, sys::now_ns() - began);
    if (!allowed || (error && error != EINVAL)) {  // EINVAL: a kernel before 5.14; there we hope
      if (__atomic_load_n(&backed[0], __ATOMIC_RELAXED)) add(shared->refused);
      return false;
    }
    __atomic_store_n(&backed[part], 1, __ATOMIC_RELAXED);
  }
  return true;
}

bool was_reserved(const void* at) {
  const size_t begin = size_t(static_cast<const char*>(at) - reinterpret_cast<const char*>(shared));
  return __atomic_load_n(&backed[begin / kPart], __ATOMIC_RELAXED);
}

void count_sanitized(int by) {
  if (room) __atomic_fetch_add(&room->sanitized, uint64_t(int64_t{by}), __ATOMIC_RELAXED);
}

void become_inert() { __atomic_store_n(&state, kInert, __ATOMIC_RELEASE); }

void open() {
  if (!folder[0]) {
    const char* name = getenv("MILLPOND_WATCH");
    if (!name || !*name || strlen(name) >= sizeof folder) return become_inert();
    strcpy(folder, name);
  }
  if (!stamp) {
    if (sys::advise(stamp_page, sys::kPageSize, sys::kWipeOnFork) == 0) stamp = stamp_page;
  }
  if (!room) map_room();
  if (room && !take_from(room->taken, room->limit, kPromised)) {
    add(room->refused);
    return become_inert();
  }
  char name[4096];
  snprintf(name, sizeof name, "%s/%d.probe", folder, int(getpid()));
  ::Shared* made = make(name);
  for (int n = 1; !made && errno == EEXIST && n < 1000; ++n) {
    snprintf(name, sizeof name, "%s/%d.%d.probe", folder, int(getpid()), n);
    made = make(name);
  }
  const int error = made ? ENOSPC : errno;  // of one that was made, what may fail yet is the memory behind it
  memset(backed, 0, sizeof backed);
  memset(counted, 0, sizeof counted);
  taken = 0;
  if (made) shared = made;
  if (!made || !reserve(shared, sizeof(::Shared))) {
    if (made) {
      syscall(SYS_unlink, name);
      discard();
    }
    if (room) {
      __atomic_fetch_sub(&room->taken, uint64_t{kPromised}, __ATOMIC_RELAXED);
      count_unseen(error);
    }
    return become_inert();
  }
  if (stamp) *stamp = 1;
  fill_in();
}

bool open_in(const char* name) {
  if (!name || !*name || strlen(name) >= sizeof folder) return false;
  strcpy(folder, name);
  ++life;
  __atomic_store_n(&state, uint32_t{kStarting}, __ATOMIC_RELEASE);
  open();
  return state != kInert;
}

void close() {
  if (shared) sys::unmap(shared, kSharedBytes);
  shared = nullptr;
  if (room) sys::unmap(room, sys::kPageSize);
  room = nullptr;
  sys::advise(stamp_page, sys::kPageSize, sys::kKeepOnFork);
  stamp = nullptr;
  folder[0] = 0;
}

void open_again(bool follow) {
  ++life;
  if (!shared) return;
  const bool was_open = state == kOpen;
  __atomic_store_n(&state, kStarting, __ATOMIC_RELEASE);
  discard();
  if (follow && was_open)
    open();
  else
    become_inert();
}

uint32_t since_start_ms(uint64_t now_ns) { return uint32_t((now_ns - shared->start_ns) / 1000000); }

}  // namespace millpond::probe::file
