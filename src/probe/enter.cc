#include "probe/enter.h"

#include <link.h>
#include <sched.h>

#include "probe/cfi.h"
#include "probe/file.h"
#include "probe/lock.h"
#include "probe/modules.h"
#include "probe/python_allocators.h"
#include "probe/real.h"
#include "probe/relocations.h"
#include "probe/scan.h"
#include "probe/setup.h"
#include "probe/snapshot.h"
#include "probe/stacks.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/tick.h"
#include "probe/use.h"
#include "probe/walk.h"

#define MP_FUNCTIONS(X) \
  X(malloc)             \
  X(calloc)             \
  X(realloc)            \
  X(free)               \
  X(posix_memalign)     \
  X(aligned_alloc)      \
  X(memalign) X(valloc) X(pvalloc) X(mmap) X(mmap64) X(munmap) X(mremap) X(free_sized) X(free_aligned_sized)
#define MP_HIDDEN(name) extern "C" __attribute__((visibility("hidden"))) char millpond_hook_##name;
MP_FUNCTIONS(MP_HIDDEN)
#undef MP_HIDDEN

namespace millpond::probe {

bool may_leave = false;
int64_t users = 0;
uint64_t own_units[kUnits];

namespace {

constexpr uint64_t kLookEvery = 100'000'000, kLongestWait = 5'000'000'000;  // ns

Lock changing;  // entering and leaving, one after the other
bool inside = false;
uint64_t next_look = 0;

#define MP_ENTRY(name) {#name, &millpond_hook_##name, nullptr},
relocations::Function functions[] = {MP_FUNCTIONS(MP_ENTRY)};
#undef MP_ENTRY
constexpr size_t kFunctions = sizeof functions / sizeof functions[0];

struct Order {
  bool here = false, libc = false, before = false;
};
int read_order(dl_phdr_info* info, size_t, void* order_) {
  auto& order = *static_cast<Order*>(order_);
  const auto holds = [&](uintptr_t address) {
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (const auto& part = info->dlpi_phdr[i];
          part.p_type == PT_LOAD && address - (info->dlpi_addr + part.p_vaddr) < part.p_memsz)
        return true;
    return false;
  };
  if (holds(uintptr_t(&own_units))) order.here = true;
  if (holds(uintptr_t(&sched_yield))) order.libc = true, order.before = order.here;
  return order.libc;
}

bool look_up() {
  static bool done = false;
  if (done) return true;
  for (relocations::Function& f : functions) f.real = relocations::definition_of(f.name);
  if (!functions[0].real) return false;
  look_up_real_of_program();
  return done = true;
}

// Whoever began before the file was closed comes to an end: nobody waits for anything of ours in there.
bool wait_for_users() {
  const uint64_t began = sys::now_ns();
  while (__atomic_load_n(&users, __ATOMIC_ACQUIRE) > 0) {
    if (sys::now_ns() - began > kLongestWait) return false;
    sched_yield();
  }
  return true;
}

int come_in(const char* folder, uint32_t flags) {
  if (is_preloaded()) return file::is_open() ? kEnterWatched : kEnterPreloaded;
  if (inside) return kEnterWatched;
  if (!look_up()) return kEnterNoMalloc;
  may_leave = true;
  setup::follow = flags & kEnterFollow;
  for (uint64_t& unit : own_units) unit = 0;
  setup::forget();
  if (!file::open_in(folder)) {
    file::close();
    return kEnterNoFile;
  }
  setup::look_around();
  setup::begin();
  if (!file::is_open()) {
    file::close();
    return kEnterNoFile;
  }
  stacks::show_native(flags & kEnterNative);
  modules::write_new();
  setup::hear_of_forks();
  next_look = sys::now_ns() + kLookEvery;
  relocations::change(functions, kFunctions);
  inside = true;
  return kEntered;
}

int go_out() {
  if (!inside) return -1;
  int left = 0;
  tick::set(nullptr, 0);
  if (!python::unwrap_allocators()) left |= kLeftAllocators;
  modules::write_new();
  at_mark();
  __atomic_store_n(&file::shared->ended_ns, sys::now_ns(), __ATOMIC_RELEASE);
  __atomic_store_n(&file::state, uint32_t{file::kInert}, __ATOMIC_SEQ_CST);
  inside = false;
  const bool alone = wait_for_users();
  if (relocations::restore()) left |= kLeftTables;  // now that no hook can change them any more
  if (alone) {
    file::close();
    snapshot::release();
    walk::release();
    scan::release();
    setup::forget();
    cfi::forget();
  } else {
    left |= kLeftMemory;
  }
  return left;
}

}  // namespace

bool is_preloaded() {
  static int answer = 0;  // 1: yes, 2: no
  if (!answer) {
    Order order;
    dl_iterate_phdr(read_order, &order);
    answer = order.before ? 1 : 2;
  }
  return answer == 1;
}

void at_mark() {
  for (int i = 0; i < kUnits; ++i)
    __atomic_store_n(&file::shared->units[i], __atomic_load_n(&own_units[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

// What the loader asks of malloc while it works does not come through tables, so its locks are not held in a hook,
// unless by a function that it calls.
void at_sample(uint64_t now) {
  uint64_t due = __atomic_load_n(&next_look, __ATOMIC_RELAXED);
  if (now < due ||
      !__atomic_compare_exchange_n(&next_look, &due, now + kLookEvery, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  at_mark();
  if (relocations::modules_changed()) relocations::change(functions, kFunctions);
}

void forget_who_is_here() {
  __atomic_store_n(&users, 0, __ATOMIC_RELAXED);
  changing = {};
  relocations::forget();
}

}  // namespace millpond::probe

using namespace millpond::probe;

#define MP_EXPORT extern "C" __attribute__((visibility("default")))

MP_EXPORT int millpond_probe_enter(const char* folder, uint32_t flags) {
  Quiet quiet;
  Locked locked(changing);
  const int result = come_in(folder, flags);
  if (result == kEntered && flags & kEnterPython) python::wrap_allocators();
  return result;
}
MP_EXPORT int millpond_probe_leave(void) {
  Quiet quiet;
  Locked locked(changing);
  return go_out();
}
MP_EXPORT int millpond_probe_watching(void) { return !file::is_open() ? 0 : may_leave ? 2 : 1; }
