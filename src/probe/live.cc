#include "probe/live.h"

#include <string.h>

#include "probe/file.h"
#include "probe/system.h"
#include "probe/use.h"

namespace millpond::probe::live {

namespace {

constexpr uint64_t kTaken = 1;
constexpr size_t kReachLimit = 254;
constexpr uint32_t kPlaces = 1 << 16;
constexpr size_t kWords = kLiveSlots / 64;

// Where in the table an address lies is known to this process alone: so entries can lie close together, and a short
// process takes a few pages of shared memory instead of one for each entry.
alignas(sys::kPageSize) uint16_t index[kPlaces];  // number of the entry, and one more; 0: none
alignas(sys::kPageSize) uint8_t reach[kPlaces];   // by home: how many places from there an entry was ever put in
uint64_t used[kWords];                            // a bit for each entry
size_t first = 0;                                 // about: few words before it have a free one
uint64_t alive = 0;
static_assert(kLiveSlots <= 0x10000);

// Of a block that is gone now: to its place and to the blocks of its size.
void count_freed(const Live& entry, bool moved) {
  if (entry.stack >= kStacks) return;
  Stack& stack = file::stacks()[entry.stack];
  SizeTotals& totals = file::shared->sizes[size_class(entry.size)];
  file::add(stack.freed_bytes, entry.bytes);
  file::add(totals.freed_bytes, entry.bytes);
  if (moved || file::since_start_ms(sys::now_ns()) - entry.born_ms > kSoonMs) return;
  file::add(totals.soon_bytes, entry.bytes);
  __atomic_fetch_add(&stack.soon_kib, uint32_t((entry.bytes + 512) >> 10), __ATOMIC_RELAXED);
}

void reach_at_least(size_t home, size_t places) {
  uint8_t old = __atomic_load_n(&reach[home], __ATOMIC_RELAXED);
  while (old < places &&
         !__atomic_compare_exchange_n(&reach[home], &old, uint8_t(places), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// An entry of the table for us alone: its number, or -1. The last one has no number of 16 bits.
int claim_from(size_t begin, size_t end) {
  for (size_t word = begin; word < end; ++word) {
    uint64_t bits = __atomic_load_n(&used[word], __ATOMIC_RELAXED);
    while (bits != ~uint64_t{0}) {
      const int bit = __builtin_ctzll(~bits);
      const int number = int(word) * 64 + bit;
      if (number >= kLiveSlots - 1) return -1;
      const uint64_t claimed = bits | uint64_t{1} << bit;
      if (!__atomic_compare_exchange_n(&used[word], &bits, claimed, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
      __atomic_store_n(&first, word, __ATOMIC_RELAXED);
      return number;
    }
  }
  return -1;
}
int claim() {
  const size_t begin = __atomic_load_n(&first, __ATOMIC_RELAXED);
  const int number = claim_from(begin, kWords);
  return number >= 0 ? number : claim_from(0, begin);
}
void release(uint32_t number) {
  __atomic_fetch_and(&used[number / 64], ~(uint64_t{1} << number % 64), __ATOMIC_RELEASE);
  if (number / 64 < __atomic_load_n(&first, __ATOMIC_RELAXED)) __atomic_store_n(&first, number / 64, __ATOMIC_RELAXED);
}

bool place(const Live& entry) {
  const int number = claim();
  if (number < 0) return false;
  Live& slot = file::live()[number];
  if (!file::reserve(&slot, sizeof slot)) {
    release(uint32_t(number));
    return false;
  }
  const void* p = reinterpret_cast<const void*>(entry.address);
  const size_t home = home_of(p);
  for (size_t distance = 0; distance < kReachLimit; ++distance) {
    uint16_t& at = index[(home + distance) % kPlaces];
    uint16_t empty = __atomic_load_n(&at, __ATOMIC_RELAXED);
    if (empty != 0) continue;
    __atomic_store_n(&slot.address, kTaken, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&at, &empty, uint16_t(number + 1), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      continue;
    slot.size = entry.size;
    slot.bytes = entry.bytes;
    slot.blocks = entry.blocks;
    slot.stack = entry.stack;
    slot.born_ms = entry.born_ms;
    slot.kind = entry.kind;
    reach_at_least(home, distance + 1);
    enter(p);
    __atomic_store_n(&slot.address, entry.address, __ATOMIC_RELEASE);
    __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
    return true;
  }
  __atomic_store_n(&slot.address, 0, __ATOMIC_RELAXED);
  release(uint32_t(number));
  return false;
}

}  // namespace

bool add(const void* p, uint64_t size, Weight weight, uint32_t stack, uint32_t born_ms, LiveKind kind) {
  if (may_hold(p)) remove(p);
  Live entry{};
  entry.address = uint64_t(p);
  entry.size = size;
  entry.bytes = weight.bytes;
  entry.blocks = weight.blocks;
  entry.stack = stack;
  entry.born_ms = born_ms;
  entry.kind = kind;
  if (place(entry)) return true;
  file::add(file::shared->lost_live);
  return false;
}

bool remove(const void* p, Live* out) {
  if (uint64_t(p) <= kTaken) return false;  // free(nullptr) is not an empty place
  Use use;
  if (!use) return false;
  const size_t home = home_of(p);
  const size_t limit = __atomic_load_n(&reach[home], __ATOMIC_RELAXED);
  for (size_t distance = 0; distance < limit; ++distance) {
    uint16_t& at = index[(home + distance) % kPlaces];
    const uint16_t number = __atomic_load_n(&at, __ATOMIC_ACQUIRE);
    if (number == 0) continue;
    Live& slot = file::live()[number - 1];
    uint64_t address = uint64_t(p);
    if (__atomic_load_n(&slot.address, __ATOMIC_RELAXED) != address ||
        !__atomic_compare_exchange_n(&slot.address, &address, kTaken, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    if (out) {
      *out = slot;
      out->address = uint64_t(p);
    }
    count_freed(slot, out != nullptr);
    __atomic_store_n(&at, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot.address, 0, __ATOMIC_RELEASE);
    release(uint32_t(number - 1));
    leave(p);
    __atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
    file::add(file::shared->frees);
    return true;
  }
  return false;
}

void put_back(const Live& entry) {
  Use use;
  if (!use) return;
  if (place(entry)) {
    if (entry.stack < kStacks) {
      file::add(file::stacks()[entry.stack].freed_bytes, uint64_t{0} - entry.bytes);
      file::add(file::shared->sizes[size_class(entry.size)].freed_bytes, uint64_t{0} - entry.bytes);
    }
    file::add(file::shared->frees, uint64_t{0} - 1);
  } else {
    file::add(file::shared->lost_live);
  }
}

bool read(uint32_t number, Live& entry) {
  const Live& slot = file::live()[number];
  if (!file::was_reserved(&slot)) return false;
  const uint64_t address = __atomic_load_n(&slot.address, __ATOMIC_ACQUIRE);
  if (address <= kTaken) return false;
  entry = slot;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&slot.address, __ATOMIC_RELAXED) == address && entry.stack < kStacks;
}

uint32_t next(uint32_t from) {
  for (size_t word = from / 64; word < kWords; ++word) {
    uint64_t bits = __atomic_load_n(&used[word], __ATOMIC_ACQUIRE);
    if (word == from / 64) bits &= ~uint64_t{0} << from % 64;
    if (bits) return uint32_t(word * 64) + uint32_t(__builtin_ctzll(bits));
  }
  return kLiveSlots;
}

uint64_t count() { return __atomic_load_n(&alive, __ATOMIC_RELAXED); }

void forget() {
  forget_filter();
  sys::wipe(reach, sizeof reach);
  sys::wipe(index, sizeof index);
  memset(used, 0, sizeof used);
  first = 0;
  alive = 0;
}

}  // namespace millpond::probe::live
