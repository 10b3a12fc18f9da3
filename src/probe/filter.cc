#include "probe/filter.h"

#include "probe/system.h"

namespace millpond::probe::live {

alignas(sys::kPageSize) uint64_t near[kNear];
alignas(sys::kPageSize) uint8_t far[kFar];

namespace {

constexpr uint8_t kFull = 255;  // a counter that came here stays: it no longer knows how many it stands for

alignas(sys::kPageSize) uint8_t sharing[kNear * kBits];  // for each bit of `near`: how many blocks it stands for

uint8_t& sharing_of(const void* p) { return sharing[word_of(p) * kBits + bit_of(p)]; }

void count_up(uint8_t& counter) {
  uint8_t old = __atomic_load_n(&counter, __ATOMIC_RELAXED);
  while (old != kFull &&
         !__atomic_compare_exchange_n(&counter, &old, uint8_t(old + 1), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
}

// Returns what is left.
uint8_t count_down(uint8_t& counter) {
  uint8_t old = __atomic_load_n(&counter, __ATOMIC_RELAXED);
  while (old != kFull && old != 0 &&
         !__atomic_compare_exchange_n(&counter, &old, uint8_t(old - 1), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old == kFull || old == 0 ? old : uint8_t(old - 1);
}

void set_near(const void* p) {
  constexpr uint64_t kOnce = uint64_t{1} << kBits;
  uint64_t& word = near_of(p);
  uint64_t old = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&word, &old, (old | near_bit(p)) + kOnce, true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
}

}  // namespace

void mark(const void* p) {
  __atomic_store_n(&sharing_of(p), kFull, __ATOMIC_SEQ_CST);
  set_near(p);
  __atomic_store_n(&far_of(hash(p)), kFull, __ATOMIC_RELAXED);
}

void enter(const void* p) {
  count_up(sharing_of(p));
  set_near(p);
  count_up(far_of(hash(p)));
}

// The bit is cleared by whoever finds that it stands for nothing, and only if none was set in its word since before that
// look: a block that is entered meanwhile is counted first and sets its bit then, so either it was seen in the count,
// or the word is another one, or its bit comes after this.
void leave(const void* p) {
  count_down(far_of(hash(p)));
  uint8_t& shared = sharing_of(p);
  uint64_t& word = near_of(p);
  uint64_t seen = __atomic_load_n(&word, __ATOMIC_SEQ_CST);
  if (count_down(shared) != 0) return;
  while (!__atomic_compare_exchange_n(&word, &seen, seen & ~near_bit(p), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
         __atomic_load_n(&shared, __ATOMIC_SEQ_CST) == 0) {
  }
}

void forget_filter() {
  sys::wipe(near, sizeof near);
  sys::wipe(far, sizeof far);
  sys::wipe(sharing, sizeof sharing);
}

}  // namespace millpond::probe::live
