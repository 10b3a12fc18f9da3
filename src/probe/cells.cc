#include "probe/cells.h"

#include <string.h>

#include "probe/file.h"
#include "probe/lock.h"
#include "probe/system.h"

namespace millpond::probe::cells {
namespace {

constexpr size_t kCells = 1 << 16, kWords = kCells / 64, kCellsOfPage = sys::kPageSize / kBytes;

Lock lock;
char* begin = nullptr;  // of all cells; set once
uint64_t used[kWords];  // a bit for each
size_t first = 0;       // no word before it has a free one
size_t touched = 0;     // cells up to the highest that was ever used

size_t number_of(const void* cell) { return size_t(static_cast<const char*>(cell) - begin) / kBytes; }

}  // namespace

void* take() {
  Locked locked(lock);
  if (!begin) {
    char* mapped = static_cast<char*>(sys::map_private(kCells * kBytes));
    if (!mapped) return nullptr;
    __atomic_store_n(&begin, mapped, __ATOMIC_RELEASE);
  }
  while (first < kWords && used[first] == ~uint64_t{0}) ++first;
  if (first == kWords) return nullptr;
  const size_t bit = size_t(__builtin_ctzll(~used[first])), cell = first * 64 + bit;
  used[first] |= uint64_t{1} << bit;
  for (; touched <= cell; ++touched)
    if (touched % kCellsOfPage == 0) file::add(file::shared->probe_bytes, sys::kPageSize);
  return memset(begin + cell * kBytes, 0, kBytes);
}

void give(void* cell) {
  Locked locked(lock);
  const size_t number = number_of(cell);
  used[number / 64] &= ~(uint64_t{1} << number % 64);
  if (number / 64 < first) first = number / 64;
}

bool holds(const void* block) {
  const char* at = __atomic_load_n(&begin, __ATOMIC_ACQUIRE);
  return at && uintptr_t(block) - uintptr_t(at) < kCells * kBytes;
}

void each(void (*call)(const void* cell)) {
  for (size_t word = 0; word < kWords; ++word)
    for (uint64_t left = used[word]; left; left &= left - 1)
      call(begin + (word * 64 + size_t(__builtin_ctzll(left))) * kBytes);
}

void forget() { lock = {}; }

}  // namespace millpond::probe::cells
