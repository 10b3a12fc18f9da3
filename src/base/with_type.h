// with_type(dtype, f): f called with a value of the C++ type that a dtype has.
#pragma once
#include "base/half.h"
#include "millpond/tensor.h"

namespace millpond {

template <class F>
auto with_type(DType t, F&& f) {
  switch (t) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kBFloat16:
      return f(bfloat16{});
    case DType::kFloat16:
      return f(float16{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUInt8:
      return f(uint8_t{});
    case DType::kBool:
      break;
  }
  return f(bool{});
}

}  // namespace millpond
