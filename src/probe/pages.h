// Memory for work that may run in a child made by clone, where malloc can be locked for good by a thread that is not
// there: mapped for it, and unmapped after it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "probe/system.h"

namespace millpond::probe {

// Memory that is not there until it is written.
template <class T>
struct Pages {
  T* at = nullptr;
  size_t count = 0;
  Pages() = default;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  bool take(size_t n) {
    constexpr int kNoReserve = 0x4000;
    at = static_cast<T*>(
        sys::map(n * sizeof(T), sys::kRead | sys::kWrite, sys::kMapPrivate | sys::kMapAnonymous | kNoReserve, -1));
    count = n;
    return at != nullptr;
  }
  void release() {
    if (at) sys::unmap(at, count * sizeof(T));
    at = nullptr, count = 0;
  }
  ~Pages() { release(); }
  T& operator[](size_t i) { return at[i]; }
  const T& operator[](size_t i) const { return at[i]; }
};

// Addresses to numbers, open addressing, twice as large when half full.
class Numbers {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  bool start(size_t capacity) {
    table_.release();
    used_ = 0;
    return table_.take(capacity);
  }
  // The number of `p`; a new one if `number` is not kNone and there was none.
  uint32_t find(const void* p, uint32_t number = kNone) {
    if (number != kNone && used_ * 2 > table_.count && !grow()) return kNone;
    for (size_t i = place(p);; i = (i + 1) & (table_.count - 1)) {
      Entry& e = table_[i];
      if (e.key == p) return e.number;
      if (e.key) continue;
      if (number == kNone) return kNone;
      e = {p, number};
      ++used_;
      return number;
    }
  }
  void renumber(const void* p, uint32_t number) {
    for (size_t i = place(p); table_[i].key; i = (i + 1) & (table_.count - 1))
      if (table_[i].key == p) table_[i].number = number;
  }

 private:
  struct Entry {
    const void* key;
    uint32_t number;
  };
  size_t place(const void* p) const { return (uint64_t(p) * 0x9e3779b97f4a7c15u >> 20) & (table_.count - 1); }
  bool grow() {
    Pages<Entry> old;
    old.at = table_.at, old.count = table_.count;
    if (!table_.take(old.count * 2)) {
      table_.at = old.at, table_.count = old.count;
      old.at = nullptr;
      return false;
    }
    for (size_t i = 0; i < old.count; ++i) {
      if (!old[i].key) continue;
      size_t to = place(old[i].key);
      while (table_[to].key) to = (to + 1) & (table_.count - 1);
      table_[to] = old[i];
    }
    return true;
  }
  Pages<Entry> table_;
  size_t used_ = 0;
};

// Of the processor: on a busy machine the clock runs on without us.
inline uint64_t busy_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

}  // namespace millpond::probe
