// Tensor: values on the host, owned or borrowed. What a user hands in (data, weights) and gets back (predictions).
// Owned memory comes from mmap and goes back to the operating system with the last copy; copies share it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "millpond/bytes.h"
#include "millpond/dtype.h"
#include "millpond/error.h"
#include "millpond/shape.h"

namespace millpond {

struct bfloat16 {
  uint16_t bits = 0;
};
struct float16 {
  uint16_t bits = 0;
};

/// Deleted for types that no tensor holds.
template <class T>
constexpr DType dtype_of() = delete;
template <>
constexpr DType dtype_of<float>() {
  return DType::kFloat32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::kFloat64;
}
template <>
constexpr DType dtype_of<bfloat16>() {
  return DType::kBFloat16;
}
template <>
constexpr DType dtype_of<float16>() {
  return DType::kFloat16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::kInt8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::kInt16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::kInt32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::kInt64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::kUInt8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::kUInt16;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::kUInt32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::kUInt64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::kBool;
}

class [[nodiscard]] Tensor {
 public:
  Tensor() = default;
  /// Zeros, charged to `account`.
  Tensor(DType dtype, Shape shape, std::string account = "data/tensor");
  /// Borrows `data`, which must outlive the tensor and every copy of it. Costs no memory.
  static Tensor view(void* data, DType dtype, Shape shape);
  /// Borrows `data` and keeps `owner` alive.
  static Tensor view(void* data, DType dtype, Shape shape, std::shared_ptr<void> owner);
  /// A copy of these values: Tensor::of(std::vector{1.f, 2.f}, {2}), Tensor::of({1.f, 2.f}, {2}). Throws Error(kShape)
  /// when there are more or fewer than the shape has.
  template <class T>
  static Tensor of(std::span<const T> values, Shape shape) {
    Tensor t(dtype_of<T>(), shape);
    if (int64_t(values.size()) != shape.size())
      throw Error(Code::kShape, "the number of values does not fit the shape " + to_string(shape));
    std::copy(values.begin(), values.end(), t.values<T>().begin());
    return t;
  }
  template <std::ranges::contiguous_range R>
  static Tensor of(const R& values, Shape shape) {
    return of(std::span<const std::ranges::range_value_t<R>>(values), shape);
  }
  template <class T>
  static Tensor of(std::initializer_list<T> values, Shape shape) {
    return of(std::span<const T>(values.begin(), values.size()), shape);
  }

  explicit operator bool() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.size(); }
  Bytes bytes() const { return size_of(dtype_) * shape_.size(); }
  std::byte* data() { return static_cast<std::byte*>(data_); }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }

  /// The elements in row-major order; none of a tensor without memory, Tensor(). Throws Error(kDType) when T is not the
  /// tensor's type.
  template <class T>
  std::span<T> values() {
    return check(dtype_of<T>()), std::span<T>(static_cast<T*>(data_), data_ ? size_t(size()) : 0);
  }
  template <class T>
  std::span<const T> values() const {
    return check(dtype_of<T>()), std::span<const T>(static_cast<const T*>(data_), data_ ? size_t(size()) : 0);
  }
  /// Element `i` of any type, as a double.
  double at(int64_t i) const;
  /// Rows [from, to) of the first dimension: a view that keeps the owner alive.
  Tensor rows(int64_t from, int64_t to) const;
  Tensor reshaped(Shape shape) const;
  /// Who keeps the memory alive; null for memory that is only borrowed.
  const std::shared_ptr<void>& owner() const { return owner_; }
  /// A copy of its own, converted as NumPy does: toward zero to whole numbers; between whole numbers the low bits stay;
  /// what does not fit is what the processor makes of it (int32: the least number), the same in every kernel.
  Tensor astype(DType dtype, std::string account = "data/tensor") const;

 private:
  void check(DType wanted) const;
  void* data_ = nullptr;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  std::shared_ptr<void> owner_;
};

}  // namespace millpond
