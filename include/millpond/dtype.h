// DType: what one element of a tensor is.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "millpond/bytes.h"

namespace millpond {

enum class DType : uint8_t { kFloat32, kFloat64, kBFloat16, kFloat16, kInt32, kInt64, kUInt8, kBool };

inline constexpr std::array kAllDTypes{DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16,
                                       DType::kInt32,   DType::kInt64,   DType::kUInt8,    DType::kBool};

constexpr Bytes size_of(DType t) {
  switch (t) {
    case DType::kFloat64:
    case DType::kInt64:
      return Bytes{8};
    case DType::kFloat32:
    case DType::kInt32:
      return Bytes{4};
    case DType::kBFloat16:
    case DType::kFloat16:
      return Bytes{2};
    case DType::kUInt8:
    case DType::kBool:
      return Bytes{1};
  }
  return Bytes{0};
}
constexpr bool is_floating(DType t) { return t <= DType::kFloat16; }

/// Keras's names: "float32", "bfloat16", "int64", "bool", ...
std::string_view to_string(DType t);
/// Throws Error(kUsage) naming the known ones.
DType parse_dtype(std::string_view name);

}  // namespace millpond
