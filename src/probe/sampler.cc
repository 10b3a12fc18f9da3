#include "probe/sampler.h"

#include <stdlib.h>

#include <algorithm>

#include "probe/chance.h"
#include "probe/enter.h"
#include "probe/file.h"
#include "probe/scan.h"
#include "probe/stacks.h"
#include "probe/system.h"
#include "probe/tables.h"
#include "probe/tick.h"
#include "probe/use.h"

namespace millpond::probe {

__thread Thread me __attribute__((tls_model("initial-exec")));

namespace sampler {
namespace {

constexpr uint64_t kFirstInterval = 512 << 10, kSmallest = 32 << 10, kLargest = 16 << 20, kExactAtLeast = 256 << 10;
constexpr uint64_t kAskAgain = 256 << 10;    // bytes
constexpr uint64_t kLookAfter = 512 << 10;   // bytes that a thread allocates at most before it asks what T is now
constexpr uint64_t kDownAtOnce = 16;         // what sampling cost lately says no more of what it will cost
constexpr uint64_t kLookEvery = 50'000'000;  // ns between two looks at what sampling costs

uint64_t seed = 0;     // of MILLPOND_SEED; 0: none
uint64_t threads = 0;  // set up so far
bool steered = true;
uint64_t sampling_ns = 0;
uint64_t next_look = 0, looked_at = 0, sampling_then = 0;

double uniform() {  // (0, 1]
  me.random = mixed(me.random);
  return double((me.random >> 11) + 1) * 0x1p-53;
}
uint64_t rounded(double x) { return uint64_t(x + uniform() - 0x1p-53); }  // up or down by chance: right on average

uint64_t exact_from(uint64_t interval) { return interval > kExactAtLeast ? interval : kExactAtLeast; }
void set_interval(uint64_t interval) {
  __atomic_store_n(&file::shared->exact_from, exact_from(interval), __ATOMIC_RELAXED);
  __atomic_store_n(&file::shared->interval, interval, __ATOMIC_RELAXED);
}

// left may not exceed exact_from, or a large block would pass; nor kLookAfter, or a thread that allocates little would
// go on for a long time with an interval that was right while libraries were imported.
uint64_t split(uint64_t gap) {
  const uint64_t left = std::min(gap, std::min(me.exact_from, kLookAfter));
  me.rest = gap - left;
  return left;
}
uint64_t draw() {
  me.interval = __atomic_load_n(&file::shared->interval, __ATOMIC_RELAXED);
  me.exact_from = exact_from(me.interval);
  return split(uint64_t(-natural_log(uniform()) * double(me.interval)));
}

// Returns what is left until the first sample of the thread.
uint64_t set_up_thread() {
  me.life = file::life;
  me.id = uint32_t(syscall(SYS_gettid));
  const uint64_t number = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
  me.random = seed ? mixed(seed) + number * 0x632be59bd9b4e019u
                   : mixed(sys::now_ns()) ^ mixed(uint64_t(getpid()) << 32 | me.id);
  return draw();
}

// Stacks are never taken out of their tables, so the fuller these are the rarer new ones should be.
uint64_t smallest_interval() {
  const uint64_t stacks = __atomic_load_n(&file::shared->stacks, __ATOMIC_RELAXED);
  const uint64_t frames = __atomic_load_n(&file::shared->frames, __ATOMIC_RELAXED);
  const uint64_t quarters = std::max(stacks * 4 / kStacks, frames * 4 / kFrames);
  return quarters < 2 ? kSmallest : quarters < 3 ? kFirstInterval : 8 * kFirstInterval;
}

// Samples cost the more the nearer they are to each other: so near that they would have cost too little still.
uint64_t down_from(uint64_t interval, uint64_t smallest, uint64_t spent, uint64_t passed) {
  uint64_t times = 2;
  while (times < kDownAtOnce && interval / times > smallest && spent * 1600 * times < passed) times *= 2;
  return std::max(interval / times, smallest);
}

void steer(uint64_t now) {
  uint64_t due = __atomic_load_n(&next_look, __ATOMIC_RELAXED);
  if (now < due || !steered) return;
  if (!__atomic_compare_exchange_n(&next_look, &due, now + kLookEvery, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  const uint64_t spent_now = __atomic_load_n(&sampling_ns, __ATOMIC_RELAXED);
  const uint64_t spent = spent_now - sampling_then, passed = now - looked_at;
  sampling_then = spent_now;
  looked_at = now;
  const uint64_t interval = file::shared->interval, alive = live::count(), smallest = smallest_interval();
  if ((spent * 400 > passed || alive > kLiveSlots / 2 || interval < smallest) && interval < kLargest)
    set_interval(interval * 2);
  else if (spent * 1600 < passed && interval > smallest && alive < kLiveSlots / 8)
    set_interval(down_from(interval, smallest, spent, passed));
}

}  // namespace

void start() {
  if (const char* text = getenv("MILLPOND_SEED")) seed = strtoull(text, nullptr, 10);
  uint64_t interval = kFirstInterval;
  if (const char* text = getenv("MILLPOND_INTERVAL"); text && atoll(text) > 0) {
    interval = uint64_t(atoll(text));
    steered = false;
  }
  threads = 0;
  sampling_ns = sampling_then = 0;
  looked_at = sys::now_ns();
  next_look = looked_at + kLookEvery;
  set_interval(interval);
}

Weight decide(uint64_t size, uint64_t taken) {
  if (me.quiet || size >= kForever) return {};
  Use use;
  if (!use) {
    if (file::state == file::kInert) me.left = may_leave ? kAskAgain : kForever;  // one that left may come again
    return {};
  }
  Quiet quiet;
  steer(sys::now_ns());
  uint64_t left;
  if (me.life != file::life) {
    left = set_up_thread();
  } else if (me.interval != __atomic_load_n(&file::shared->interval, __ATOMIC_RELAXED)) {
    left = draw();  // the old gap may be dropped at any time: what is left of it is distributed like a new one
  } else {
    left = quiet.left();
  }
  quiet.resume_with(left);
  if (size >= me.exact_from) return {size, 1};
  const uint64_t gap = left + me.rest;
  if (size < gap) {
    quiet.resume_with(split(gap - size - 1));
    return {};
  }
  quiet.resume_with(draw());
  const double p = hit_probability(double(size + 1) / double(me.interval));
  return {rounded(double(taken) / p), float(1 / p)};
}

bool record(void* block, uint64_t size, Weight weight, LiveKind kind, const void* caller) {
  Use use;
  if (!use) return false;
  Quiet quiet;
  const uint64_t begin = sys::now_ns(), reserved = __atomic_load_n(&file::reserve_ns, __ATOMIC_RELAXED);
  const uint32_t stack = stacks::here(caller);
  Stack& entry = file::stacks()[stack];
  const bool added = live::add(block, size, weight, stack, file::since_start_ms(begin), kind);
  if (added) {
    const uint64_t blocks = rounded(double(weight.blocks));
    SizeTotals& totals = file::shared->sizes[live::size_class(size)];
    file::add(entry.total_bytes, weight.bytes);
    file::add(entry.total_blocks, blocks);
    file::add(totals.bytes, weight.bytes);
    file::add(totals.blocks, blocks);
    if (entry.thread != me.id) __atomic_fetch_or(&entry.flags, uint16_t{kStackShared}, __ATOMIC_RELAXED);
    file::add(file::shared->samples);
  }
  const uint64_t end = sys::now_ns();
  const uint64_t once = __atomic_load_n(&file::reserve_ns, __ATOMIC_RELAXED) - reserved;
  if (once < end - begin) file::add(sampling_ns, end - begin - once);
  spent(end - begin);
  steer(end);
  if (may_leave)
    at_sample(end);
  else
    tables::at_sample(end);
  tick::at(end);
  scan::at_sample(end);
  return added;
}

void look(uint64_t now) { steer(now); }

void spent(uint64_t ns) { file::add(file::shared->probe_ns, ns); }

}  // namespace sampler
}  // namespace millpond::probe
