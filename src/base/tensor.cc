#include "millpond/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "base/half.h"
#include "base/segment.h"

namespace millpond {

namespace {
constexpr Bytes kSmall{64 << 10};  // below this a mapping of its own would waste more than it saves

// Aligned for vectors; a line of cache at least, so that an empty tensor has an address too.
struct SmallBlock {
  SmallBlock(Bytes size, std::string account)
      : data(::operator new(size_t(std::max<int64_t>(size.value, 1)), std::align_val_t{64})),
        holding(std::move(account), size, data) {
    std::memset(data, 0, size_t(size.value));
  }
  ~SmallBlock() { ::operator delete(data, std::align_val_t{64}); }
  SmallBlock(const SmallBlock&) = delete;
  SmallBlock& operator=(const SmallBlock&) = delete;
  void* data;
  Holding holding;
};

Bytes bytes_of(DType dtype, const Shape& shape) {
  int64_t n = 0;
  if (__builtin_mul_overflow(shape.size(), size_of(dtype).value, &n))
    throw Error(Code::kShape, format("a tensor of shape {} and type {} has more than 2^63 bytes", shape, dtype));
  return Bytes{n};
}

template <class F>
decltype(auto) with_type(DType t, F&& f) {
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

template <class T>
constexpr bool kHalf = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

// A bool from a stranger's file may be any byte, and reading such a bool is undefined: it is read as a number.
template <class T>
auto load(const void* data, int64_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return static_cast<const uint8_t*>(data)[i] != 0;
  else
    return static_cast<const T*>(data)[i];
}

// A whole number as a double whose last bit says whether anything was cut off, so that rounding it further is right.
double sticky(int64_t v) {
  uint64_t u = v < 0 ? 0 - uint64_t(v) : uint64_t(v);
  if (u >> 53) u = (u >> 11 | uint64_t((u & 2047) != 0)) << 11;
  return v < 0 ? -double(u) : double(u);
}

// Between whole numbers the low bits are kept, as in NumPy; a float out of range goes to the nearest end and NaN to 0,
// where NumPy leaves it to the processor.
template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (kHalf<From>)
    return convert<To>(to_float(v));
  else if constexpr (std::is_same_v<To, bool>)
    return v != From{};
  else if constexpr (std::is_same_v<To, bfloat16>) {
    if constexpr (std::is_floating_point_v<From>)
      return to_bfloat16(v);
    else
      return to_bfloat16(sticky(int64_t(v)));
  } else if constexpr (std::is_same_v<To, float16>) {
    if constexpr (std::is_floating_point_v<From>)
      return to_float16(v);
    else
      return to_float16(sticky(int64_t(v)));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (v != v) return 0;
    constexpr auto kLow = std::numeric_limits<To>::min(), kHigh = std::numeric_limits<To>::max();
    if (v <= From(kLow)) return kLow;
    return v >= From(kHigh) ? kHigh : To(v);  // From(kHigh) may be kHigh + 1, which no To reaches either
  } else
    return To(v);
}
}  // namespace

Tensor::Tensor(DType dtype, Shape shape, std::string account) : dtype_(dtype), shape_(shape) {
  const Bytes size = bytes_of(dtype, shape);
  if (size >= kSmall) {
    auto segment = std::make_shared<Segment>(size, std::move(account));
    data_ = segment->data();
    owner_ = std::move(segment);
  } else {
    auto block = std::make_shared<SmallBlock>(size, std::move(account));
    data_ = block->data;
    owner_ = std::move(block);
  }
}

Tensor Tensor::view(void* data, DType dtype, Shape shape) { return view(data, dtype, shape, nullptr); }
Tensor Tensor::view(void* data, DType dtype, Shape shape, std::shared_ptr<void> owner) {
  bytes_of(dtype, shape);
  Tensor t;
  t.data_ = data;
  t.dtype_ = dtype;
  t.shape_ = shape;
  t.owner_ = std::move(owner);
  return t;
}

double Tensor::at(int64_t i) const {
  if (i < 0 || i >= size() || !data_)
    throw Error(Code::kValue, format("element {} of a tensor of shape {} does not exist", i, shape_))
        .hint(format("it has {}", data_ ? size() : 0));
  return with_type(dtype_, [&]<class T>(T) { return convert<double>(load<T>(data_, i)); });
}

Tensor Tensor::rows(int64_t from, int64_t to) const {
  if (shape_.rank() == 0 || from < 0 || to < from || to > shape_[0])
    throw Error(Code::kShape, format("rows [{}, {}) of a tensor of shape {} do not exist", from, to, shape_))
        .hint(shape_.rank() == 0 ? "a scalar has no rows" : format("it has rows [0, {})", shape_[0]));
  Tensor t = *this;
  t.shape_ = shape_.with(0, to - from);
  if (data_ && from > 0)
    t.data_ = static_cast<std::byte*>(data_) + from * (size_of(dtype_) * shape_.without(0).size()).value;
  return t;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (shape.size() != size())
    throw Error(Code::kShape, format("a tensor of shape {} has {} elements and cannot take the shape {} of {}", shape_,
                                     size(), shape, shape.size()));
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::astype(DType dtype, std::string account) const {
  Tensor t(dtype, shape_, std::move(account));
  const size_t n = data_ ? size_t(size()) : 0;
  if (dtype == dtype_) {
    if (n) std::memcpy(t.data_, data_, n * size_t(size_of(dtype).value));
    return t;
  }
  with_type(dtype_, [&]<class From>(From) {
    with_type(dtype, [&]<class To>(To) {
      auto* to = static_cast<To*>(t.data_);
      for (size_t i = 0; i < n; ++i) to[i] = convert<To>(load<From>(data_, int64_t(i)));
    });
  });
  return t;
}

void Tensor::check(DType wanted) const {
  if (dtype_ != wanted)
    throw Error(Code::kDType, format("a tensor of {} was read as {}", dtype_, wanted))
        .hint(format("use astype, or ask for {}", dtype_));
}

}  // namespace millpond
