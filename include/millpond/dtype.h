// DType: what one element of a tensor is.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "millpond/bytes.h"

namespace millpond {

enum class DType : uint8_t {
  kFloat32,
  kFloat64,
  kBFloat16,
  kFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool
};

inline constexpr std::array kAllDTypes{
    DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16, DType::kInt8,   DType::kInt16, DType::kInt32,
    DType::kInt64,   DType::kUInt8,   DType::kUInt16,   DType::kUInt32,  DType::kUInt64, DType::kBool};

constexpr Bytes size_of(DType t) {
  switch (t) {
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      return Bytes{8};
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUInt32:
      return Bytes{4};
    case DType::kBFloat16:
    case DType::kFloat16:
    case DType::kInt16:
    case DType::kUInt16:
      return Bytes{2};
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      return Bytes{1};
  }
  return Bytes{0};
}
constexpr bool is_floating(DType t) { return t <= DType::kFloat16; }
/// Whole numbers; bool is none.
constexpr bool is_integer(DType t) { return t >= DType::kInt8 && t <= DType::kUInt64; }
constexpr bool is_signed(DType t) { return t <= DType::kInt64; }
/// Computed in float32 and rounded when it is stored.
constexpr bool is_half(DType t) { return t == DType::kBFloat16 || t == DType::kFloat16; }

/// Keras's names: "float32", "bfloat16", "int64", "bool", ...
std::string_view to_string(DType t);
/// Throws Error(kUsage) naming the known ones.
DType parse_dtype(std::string_view name);

}  // namespace millpond
