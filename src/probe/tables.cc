#include "probe/tables.h"

#include "probe/system.h"

namespace millpond::probe::tables {
namespace {

constexpr uint64_t kLookEvery = 100'000'000;  // ns
constexpr uint64_t kSoon = 300'000'000;
constexpr size_t kMost = 64;
relocations::Function all[kMost];
size_t count = 0;
uint64_t next_look = ~uint64_t{0};

}  // namespace

void add(const relocations::Function* functions, size_t more) {
  for (size_t i = 0; i < more && count < kMost; ++i)
    if (functions[i].real) all[count++] = functions[i];
}

void change() {
  if (!count) return;
  relocations::change(all, count);
  next_look = sys::now_ns() + kLookEvery;
}

void change_soon() {
  if (count) next_look = sys::now_ns() + kSoon;
}

void at_sample(uint64_t now) {
  uint64_t due = __atomic_load_n(&next_look, __ATOMIC_RELAXED);
  if (now < due ||
      !__atomic_compare_exchange_n(&next_look, &due, now + kLookEvery, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  if (relocations::modules_changed()) relocations::change(all, count);
}

}  // namespace millpond::probe::tables
