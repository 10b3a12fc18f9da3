// Stored and Lanes: dtypes and the numbers they are computed with, as plain enumerations for files that are compiled
// for each instruction set (those must not instantiate what others do too).
#pragma once
#include <cstdint>

namespace millpond::backend::cpu {

/// In the order of DType.
enum class Stored : uint8_t {
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

enum class Lanes : uint8_t { kFloat, kDouble, kInt32, kInt64, kUInt64 };

}  // namespace millpond::backend::cpu
