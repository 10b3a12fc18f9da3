#include "probe/marks.h"

#include <malloc.h>
#include <string.h>

#include "probe/agent_heap.h"
#include "probe/enter.h"
#include "probe/file.h"
#include "probe/lock.h"
#include "probe/modules.h"
#include "probe/python_allocators.h"
#include "probe/real.h"
#include "probe/ring.h"
#include "probe/sampler.h"
#include "probe/snapshot.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/use.h"

namespace millpond::probe::marks {
namespace {

Lock snapshots;  // their scratch memory is one
constexpr uint64_t kUnknown = ~uint64_t{0};
struct mallinfo2 (*ask_mallinfo)() = nullptr;  // null: the allocator has none

void ask_allocator(MarkRecord& record) {
  record.heap_in_use = record.heap_free = record.heap_mapped = kUnknown;
  if (!ask_mallinfo) return;
  const struct mallinfo2 info = ask_mallinfo();
  record.heap_in_use = info.uordblks + agent_heap::in_use();
  record.heap_free = info.fordblks;
  record.heap_mapped = info.hblkhd + __atomic_load_n(&file::shared->mapped_now, __ATOMIC_RELAXED);
}

void note_first_period(uint64_t now_ms) {
  uint64_t none = 0;
  __atomic_compare_exchange_n(&file::shared->first_period_ms, &none, now_ms ? now_ms : 1, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
}

}  // namespace

void mark(const char* kind, const char* name, int64_t index, uint32_t flags) {
  if (me.quiet > me.paused) return;  // a signal's handler, in the middle of our own work
  Use use;
  if (!use) return;
  Quiet quiet;
  const uint64_t begin = sys::now_ns();
  Shared& shared = *file::shared;
  modules::write_new();
  if (may_leave) at_mark();
  sampler::look(begin);
  MarkRecord record{};
  strncpy(record.kind, kind ? kind : "", sizeof record.kind - 1);
  record.index = index;
  record.flags = flags;
  record.name_size = name ? uint32_t(strnlen(name, 4096)) : 0;
  record.rss = sys::resident().all;
  ask_allocator(record);
  record.python_arenas = python::arena_bytes();
  for (int i = 0; i < kUnits; ++i) record.units[i] = __atomic_load_n(&shared.units[i], __ATOMIC_RELAXED);
  const uint64_t now_ms = file::since_start_ms(begin);
  if (flags & kMarkPeriod) note_first_period(now_ms);
  if (flags & kMarkSnapshot) {
    Locked locked(snapshots);
    const snapshot::Taken taken = snapshot::take(now_ms, shared.first_period_ms);
    record.sites = taken.count;
    ring::write(kRecordMark, begin, {&record, sizeof record}, {taken.sites, taken.count * sizeof(SiteBytes)},
                {name, record.name_size});
  } else {
    ring::write(kRecordMark, begin, {&record, sizeof record}, {}, {name, record.name_size});
  }
  sampler::spent(sys::now_ns() - begin);
}

uint64_t free_bytes() { return ask_mallinfo ? ask_mallinfo().fordblks : kUnknown; }

void start() { ask_mallinfo = reinterpret_cast<struct mallinfo2 (*)()>(allocator_function("mallinfo2")); }

void forget() {
  snapshots = {};
  snapshot::forget();
}

}  // namespace millpond::probe::marks
