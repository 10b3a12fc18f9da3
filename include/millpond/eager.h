// EagerTensor: a value that is computed at once, by the same operators and kernels that planned programs are made of.
//
//   EagerTensor x({{1, 2, 3}, {4, 5, 6}});           // float32[2, 3]
//   EagerTensor y = (x - ops::mean(x)) * 2;          // arithmetic, broadcasting and dtypes as in Keras and NumPy
//   EagerTensor last = y[{Slice{}, -1}];             // y[:, -1]
//   std::cout << last << " " << double(ops::sum(y));
//
// Tensor, EagerTensor, SymbolicTensor: an array of the user's, which may be written; a value that an operator has made,
// which never changes; and what a layer will give once a model runs. A Tensor stands wherever an EagerTensor is wanted:
// its values are copied. to_tensor() is the way back.
//
// A handle: copies are the same value. Its bytes go back to a pool with the last of them, and the next operator takes
// them from there, so a loop of such steps takes no more memory than its first rounds. The pool keeps what is idle up to
// a bound (set_eager_memory), gives back what has not been used for a while, and everything that is idle when a model
// trains or clear_session() is called. Account: eager/pool. What one operator, layer or loss needs to be run by itself is
// made when it first meets operands of such types and kept, within a bound too; a layer's goes with the layer.
//
// Threads: any may use eager tensors; operations take turns.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "millpond/tensor.h"

namespace millpond {

namespace eager {
struct TensorImpl;
}

/// A number in a formula, x + 1: it takes the dtype of the tensor beside it, but a fraction makes whole numbers float32,
/// as in Keras.
class Numeral {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  Numeral(T value)
      : kind_(std::is_same_v<T, bool>       ? Kind::kBool
              : std::is_floating_point_v<T> ? Kind::kFraction
                                            : Kind::kWhole),
        value_(double(value)),
        whole_(std::is_floating_point_v<T> ? 0 : int64_t(value)) {}
  enum class Kind : uint8_t { kBool, kWhole, kFraction };
  Kind kind() const { return kind_; }
  double value() const { return value_; }
  int64_t whole() const { return whole_; }

 private:
  Kind kind_;
  double value_;
  int64_t whole_;
};

/// Python's start:stop:step. Slice{1, 3} is 1:3, Slice{} is ":", Slice{.step = -1} is "::-1". Negative numbers count from
/// the end, and what lies outside is cut off.
struct Slice {
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;
};
struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis newaxis;    // a dimension of 1: x[{newaxis, 0}]
inline constexpr Ellipsis ellipsis;  // as many ":" as are missing: x[{ellipsis, 0}]

/// What stands between the brackets for one dimension. A number takes the dimension away.
class Index {
 public:
  template <std::integral T>
  Index(T at) : what_(int64_t(at)) {}
  Index(Slice slice) : what_(slice) {}
  Index(NewAxis axis) : what_(axis) {}
  Index(Ellipsis rest) : what_(rest) {}
  const std::variant<int64_t, Slice, NewAxis, Ellipsis>& what() const { return what_; }

 private:
  std::variant<int64_t, Slice, NewAxis, Ellipsis> what_;
};

class [[nodiscard]] EagerTensor {
 public:
  /// None: no gradient, no mask. Everything but is_none() throws Error(kUsage).
  EagerTensor() = default;
  /// A copy of the values.
  EagerTensor(const Tensor& values);
  /// A vector and a matrix of float32: EagerTensor({1, 2, 3}), EagerTensor({{1, 2}, {3, 4}}).
  EagerTensor(std::initializer_list<double> values);
  EagerTensor(std::initializer_list<std::initializer_list<double>> rows);
  /// A scalar of this type: EagerTensor::scalar(1.5).
  static EagerTensor scalar(double value, DType dtype = DType::kFloat32);
  /// A copy of these values, EagerTensor::of(std::vector{1.f, 2.f}, {2}). Throws Error(kShape) when there are more or
  /// fewer than the shape has.
  template <class T>
  static EagerTensor of(std::span<const T> values, Shape shape) {
    return of(values.data(), dtype_of<std::remove_const_t<T>>(), int64_t(values.size()), shape);
  }
  template <std::ranges::contiguous_range R>
  static EagerTensor of(const R& values, Shape shape) {
    return of(std::span<const std::ranges::range_value_t<R>>(values), shape);
  }

  bool is_none() const { return impl_ == nullptr; }
  /// Whether its one value is true, not 0: if (loss < 0.1) break. Throws Error(kUsage) for several values, as NumPy does:
  /// ask ops::all or ops::any.
  explicit operator bool() const;
  DType dtype() const;
  const Shape& shape() const;
  int rank() const { return shape().rank(); }
  int64_t size() const { return shape().size(); }
  Bytes bytes() const { return size_of(dtype()) * size(); }

  /// A copy of the values on the host (Keras: convert_to_numpy). Waits until they have been computed, as everything does
  /// that looks at values.
  Tensor to_tensor(std::string account = "data/tensor") const;
  /// All values in row-major order. Throws Error(kDType) unless T is the tensor's type, Error(kShape) unless there is
  /// room for exactly as many.
  template <class T>
  void copy_to(std::span<T> values) const {
    copy_to(values.data(), dtype_of<T>(), int64_t(values.size()));
  }
  /// The one value of a tensor that has one: double(loss). Throws Error(kShape) for any other.
  double item() const;
  explicit operator double() const { return item(); }
  explicit operator float() const { return float(item()); }

  /// x[0], x[{0, Slice{1, 3}}], x[{ellipsis, newaxis}]. Throws Error(kShape) for what is not there.
  EagerTensor operator[](Index index) const { return operator[]({index}); }
  EagerTensor operator[](std::initializer_list<Index> indices) const { return at({indices.begin(), indices.size()}); }
  EagerTensor at(std::span<const Index> indices) const;

  explicit EagerTensor(std::shared_ptr<eager::TensorImpl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<eager::TensorImpl>& impl() const { return impl_; }

 private:
  static EagerTensor of(const void* values, DType dtype, int64_t count, Shape shape);
  void copy_to(void* values, DType dtype, int64_t count) const;
  std::shared_ptr<eager::TensorImpl> impl_;
};

using EagerTensors = std::vector<EagerTensor>;

// Arithmetic, comparison and logic, element by element. Shapes broadcast as in NumPy. Operands of two dtypes meet in the
// one that Keras chooses: int32 and float32 in float32, float16 and bfloat16 in float32, int64 and float32 in float32.
// Comparisons give bool; / of whole numbers gives float32; & | ^ ~ are logical for bool and bit by bit for whole numbers;
// % has the sign of the divisor. Throws Error(kShape) or Error(kDType) with both operands.
#define MP_OPERATOR(sign)                                                \
  EagerTensor operator sign(const EagerTensor& x, const EagerTensor& y); \
  EagerTensor operator sign(const EagerTensor& x, Numeral y);            \
  EagerTensor operator sign(Numeral x, const EagerTensor& y);
MP_OPERATOR(+)
MP_OPERATOR(-)
MP_OPERATOR(*)
MP_OPERATOR(/)
MP_OPERATOR(%)
MP_OPERATOR(<)
MP_OPERATOR(<=)
MP_OPERATOR(>)
MP_OPERATOR(>=)
MP_OPERATOR(==)
MP_OPERATOR(!=)
MP_OPERATOR(&)
MP_OPERATOR(|)
MP_OPERATOR(^)
#undef MP_OPERATOR
EagerTensor operator-(const EagerTensor& x);
EagerTensor operator~(const EagerTensor& x);
/// x becomes another value; what else looked at the old one still does.
template <class Y>
EagerTensor& operator+=(EagerTensor& x, const Y& y) {
  return x = x + y;
}
template <class Y>
EagerTensor& operator-=(EagerTensor& x, const Y& y) {
  return x = x - y;
}
template <class Y>
EagerTensor& operator*=(EagerTensor& x, const Y& y) {
  return x = x * y;
}
template <class Y>
EagerTensor& operator/=(EagerTensor& x, const Y& y) {
  return x = x / y;
}

/// As NumPy prints it, with type: "[[1, 2], [3, 4]] float32[2, 2]", a row of a matrix on a line. Of more than 1,000
/// values the first and last three of each dimension.
std::string to_string(const EagerTensor& tensor);
std::ostream& operator<<(std::ostream& out, const EagerTensor& tensor);

/// The dtype in which operands of these types meet, as keras.backend.result_type says.
DType result_type(DType x, DType y);

/// What eager tensors hold now.
struct EagerMemory {
  Bytes used;        // by tensors that somebody has
  Bytes idle;        // of the pool, for the next ones
  Bytes bound;       // of idle
  Bytes programs;    // kept to run operators, losses and gradients, about
  int64_t made = 0;  // how many of these were ever made: it stands still once a loop has met all its types
};
EagerMemory eager_memory();
/// Bounds from now on: of what the pool keeps idle, and of what is kept to run things.
struct EagerBounds {
  Bytes pool = 256_MiB;
  Bytes programs = 64_MiB;
};
void set_eager_memory(EagerBounds bounds);

}  // namespace millpond
