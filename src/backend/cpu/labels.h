// Labels: whole numbers of any type, as class labels and row indices are.
#pragma once
#include <cstdint>

#include "backend/cpu/stored.h"

namespace millpond::backend::cpu {

struct Labels {
  const void* first;
  Stored type;
};

namespace {  // of each file its own: some are compiled for another instruction set
inline __attribute__((always_inline)) int64_t label_at(Labels l, int64_t i) {
  if (l.type == Stored::kInt32) return static_cast<const int32_t*>(l.first)[i];
  if (l.type == Stored::kInt64) return static_cast<const int64_t*>(l.first)[i];
  switch (l.type) {
    case Stored::kInt8:
      return static_cast<const int8_t*>(l.first)[i];
    case Stored::kInt16:
      return static_cast<const int16_t*>(l.first)[i];
    case Stored::kUInt16:
      return static_cast<const uint16_t*>(l.first)[i];
    case Stored::kUInt32:
      return static_cast<const uint32_t*>(l.first)[i];
    case Stored::kUInt64: {  // what no int64 holds is beyond every table
      const uint64_t v = static_cast<const uint64_t*>(l.first)[i];
      return v > uint64_t(INT64_MAX) ? INT64_MAX : int64_t(v);
    }
    default:
      return static_cast<const uint8_t*>(l.first)[i];
  }
}
/// Brought into [0, count).
inline __attribute__((always_inline)) int64_t label_below(Labels l, int64_t i, int64_t count) {
  const int64_t k = label_at(l, i);
  return k < 0 ? 0 : k >= count ? count - 1 : k;
}
}  // namespace

}  // namespace millpond::backend::cpu
