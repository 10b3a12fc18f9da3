// with_type(dtype, f): f.operator()<T>() for the C++ type T that a dtype has.
#pragma once
#include <cstdint>

#include "base/assert.h"
#include "millpond/tensor.h"

namespace millpond {

template <class F>
decltype(auto) with_floating(DType t, F&& f) {
  switch (t) {
    case DType::kFloat64:
      return f.template operator()<double>();
    case DType::kBFloat16:
      return f.template operator()<bfloat16>();
    case DType::kFloat16:
      return f.template operator()<float16>();
    default:
      MP_ASSERT(t == DType::kFloat32);
      return f.template operator()<float>();
  }
}

template <class F>
decltype(auto) with_type(DType t, F&& f) {
  switch (t) {
    case DType::kInt8:
      return f.template operator()<int8_t>();
    case DType::kInt16:
      return f.template operator()<int16_t>();
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    case DType::kUInt8:
      return f.template operator()<uint8_t>();
    case DType::kUInt16:
      return f.template operator()<uint16_t>();
    case DType::kUInt32:
      return f.template operator()<uint32_t>();
    case DType::kUInt64:
      return f.template operator()<uint64_t>();
    case DType::kBool:
      return f.template operator()<bool>();
    default:
      return with_floating(t, f);
  }
}

/// A type of the same size, for what only moves values.
template <class F>
decltype(auto) with_size(DType t, F&& f) {
  switch (size_of(t).value) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

}  // namespace millpond
