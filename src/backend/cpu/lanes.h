// Which lanes a dtype is computed in (typed_steps.h).
#pragma once
#include "backend/cpu/stored.h"
#include "millpond/dtype.h"

namespace millpond::backend::cpu {

constexpr Stored as_stored(DType t) { return Stored(uint8_t(t)); }
static_assert(uint8_t(DType::kBFloat16) == uint8_t(Stored::kBFloat16) &&
              uint8_t(DType::kInt8) == uint8_t(Stored::kInt8) && uint8_t(DType::kBool) == uint8_t(Stored::kBool));

constexpr Lanes lanes_of(DType t) {
  switch (t) {
    case DType::kFloat64:
      return Lanes::kDouble;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kUInt8:
    case DType::kUInt16:
      return Lanes::kInt32;
    case DType::kInt64:
    case DType::kUInt32:
      return Lanes::kInt64;
    case DType::kUInt64:
      return Lanes::kUInt64;
    default:
      return Lanes::kFloat;
  }
}
constexpr int64_t lane_bytes(Lanes l) { return l == Lanes::kFloat || l == Lanes::kInt32 ? 4 : 8; }
/// In memory as in lanes.
constexpr bool stored_as_lanes(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kInt32 || t == DType::kInt64 ||
         t == DType::kUInt64;
}

}  // namespace millpond::backend::cpu
