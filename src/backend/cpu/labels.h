// Labels: whole numbers of 1, 4 or 8 bytes, as class labels and row indices are.
#pragma once
#include <cstdint>

namespace millpond::backend::cpu {

struct Labels {
  const void* first;
  int bytes;
};

namespace {  // of each file its own: some are compiled for another instruction set
inline __attribute__((always_inline)) int64_t label_at(Labels l, int64_t i) {
  if (l.bytes == 4) return static_cast<const int32_t*>(l.first)[i];
  if (l.bytes == 8) return static_cast<const int64_t*>(l.first)[i];
  return static_cast<const uint8_t*>(l.first)[i];
}
/// Brought into [0, count).
inline __attribute__((always_inline)) int64_t label_below(Labels l, int64_t i, int64_t count) {
  const int64_t k = label_at(l, i);
  return k < 0 ? 0 : k >= count ? count - 1 : k;
}
}  // namespace

}  // namespace millpond::backend::cpu
