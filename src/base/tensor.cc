#include "millpond/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/convert.h"
#include "base/format.h"
#include "base/segment.h"
#include "base/with_type.h"

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
  return with_type(dtype_, [&]<class T>() { return convert<double>(load(static_cast<const T*>(data_), i)); });
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
  if (data_) convert(data_, dtype_, t.data_, dtype, size());
  return t;
}

void Tensor::check(DType wanted) const {
  if (dtype_ != wanted)
    throw Error(Code::kDType, format("a tensor of {} was read as {}", dtype_, wanted))
        .hint(format("use astype, or ask for {}", dtype_));
}

}  // namespace millpond
