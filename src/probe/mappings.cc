#include "probe/mappings.h"

#include <sys/stat.h>

#include "probe/file.h"
#include "probe/live.h"
#include "probe/lock.h"
#include "probe/real.h"
#include "probe/sampler.h"
#include "probe/scan.h"
#include "probe/stacks.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/use.h"

namespace millpond::probe::mappings {
namespace {

constexpr size_t kSmallest = 64 << 10;
constexpr uint32_t kMappings = 4096;

struct Mapping {
  uint64_t begin, size;
  uint32_t stack, born_ms;
  bool arena;
};
alignas(sys::kPageSize) Mapping known[kMappings];  // the first `used`, in no order
uint32_t used = 0;
Lock changing;
CodeRange python_code;
bool python_has_own_heap = false;

uint64_t whole_pages(uint64_t size) { return (size + sys::kPageSize - 1) & ~uint64_t{sys::kPageSize - 1}; }

void publish(const Mapping& m) {
  live::add(reinterpret_cast<void*>(m.begin), m.size, {m.size, 1}, m.stack, m.born_ms, kLiveMmap);
  file::add(file::shared->mapped_now, m.size);
}
void withdraw(const Mapping& m) {
  live::remove(reinterpret_cast<void*>(m.begin));
  file::add(file::shared->mapped_now, uint64_t{0} - m.size);
}
bool put(const Mapping& m) {
  if (used == kMappings) {
    file::add(file::shared->lost_live);
    return false;
  }
  known[used] = m;
  __atomic_store_n(&used, used + 1, __ATOMIC_RELAXED);
  publish(m);
  return true;
}

void cut(uint64_t begin, uint64_t end) {
  for (uint32_t i = 0; i < used;) {
    const Mapping m = known[i];
    const uint64_t m_end = m.begin + m.size;
    if (m_end <= begin || end <= m.begin) {
      ++i;
      continue;
    }
    withdraw(m);
    known[i] = known[used - 1];
    __atomic_store_n(&used, used - 1, __ATOMIC_RELAXED);
    // What is left lies outside of the cut, so the loop passes over it when it meets it.
    if (m.begin < begin) put({m.begin, begin - m.begin, m.stack, m.born_ms, false});
    if (end < m_end) put({end, m_end - end, m.stack, m.born_ms, false});
  }
}

// Of devices nothing is memory of the program, and code is not what grows.
bool counts(int protection, int flags, int fd) {
  constexpr int kExecute = 4;
  if (flags & sys::kMapAnonymous) return true;
  struct stat facts;
  return !(protection & kExecute) && syscall(SYS_fstat, fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

bool none() { return __atomic_load_n(&used, __ATOMIC_RELAXED) == 0; }

}  // namespace

void added(void* at, size_t size, int protection, int flags, int fd, const void* caller) {
  if (me.quiet) return;
  Use use;
  if (!use) return;
  if (flags & sys::kMapFixed) removing(at, size);  // it replaces what was there
  if (size < kSmallest || protection == 0 || allocator_code.holds(caller) ||
      (python_has_own_heap && python_code.holds(caller) && flags & sys::kMapPrivate))
    return;
  Quiet quiet;
  if (!counts(protection, flags, fd)) return;
  const uint64_t begin = sys::now_ns();
  const bool arena = python_code.holds(caller) && (size == 256 << 10 || size == 1 << 20);
  const uint32_t stack = stacks::here(caller);
  {
    Locked locked(changing);
    if (put({uint64_t(at), whole_pages(size), stack, file::since_start_ms(begin), arena})) {
      file::add(file::stacks()[stack].total_bytes, whole_pages(size));
      file::add(file::stacks()[stack].total_blocks);
      file::add(file::shared->samples);
    }
  }
  const uint64_t end = sys::now_ns();
  sampler::spent(end - begin);
  scan::at_sample(end);  // a program may take all of its memory so
}

void removing(void* at, size_t size) {
  if (me.quiet || none() || uint64_t(at) % sys::kPageSize != 0) return;
  Use use;
  if (!use) return;
  Quiet quiet;
  Locked locked(changing);
  cut(uint64_t(at), uint64_t(at) + whole_pages(size));
}

Moved lift(void* at, size_t size) {
  Moved moved;
  if (me.quiet || none()) return moved;
  Use use;
  if (!use) return moved;
  Quiet quiet;
  Locked locked(changing);
  for (uint32_t i = 0; i < used && !moved.known; ++i)
    if (uint64_t(at) >= known[i].begin && uint64_t(at) < known[i].begin + known[i].size)
      moved = {true, known[i].stack, known[i].born_ms};
  if (moved.known) cut(uint64_t(at), uint64_t(at) + whole_pages(size));
  return moved;
}

void put_down(const Moved& moved, void* at, size_t size) {
  if (!moved.known || size == 0) return;
  Use use;
  if (!use) return;
  Quiet quiet;
  Locked locked(changing);
  put({uint64_t(at), whole_pages(size), moved.stack, moved.born_ms, false});
}

uint64_t release_arenas() {
  Use use;
  if (!use) return 0;
  Quiet quiet;
  Locked locked(changing);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < used;) {
    if (!known[i].arena) {
      ++i;
      continue;
    }
    bytes += known[i].size;
    withdraw(known[i]);
    known[i] = known[used - 1];
    __atomic_store_n(&used, used - 1, __ATOMIC_RELAXED);
  }
  return bytes;
}

void set_python_code(uintptr_t begin, uintptr_t end, bool own_heap) {
  python_code = {begin, end};
  python_has_own_heap = own_heap;
}

void forget() {
  changing = {};
  used = 0;
}

}  // namespace millpond::probe::mappings
