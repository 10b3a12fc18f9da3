#include "ops/reduce.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/cast.h"
#include "ops/check.h"
#include "ops/reshape.h"

namespace millpond::ops {

namespace {
constexpr std::string_view kNames[] = {"sum", "mean", "max"};

Shape kept(Shape shape, const std::vector<int>& axes) {
  for (int a : axes) shape = shape.with(a, 1);
  return shape;
}
int64_t count(const Shape& shape, const std::vector<int>& axes) {
  int64_t n = 1;
  for (int a : axes) n *= shape[a];
  return n;
}
}  // namespace

std::string Reduce::attributes() const {
  return format("{} axes={}{}", kNames[int(kind)], fmt::join(axes, ","), keepdims ? " keepdims" : "");
}

std::vector<TensorType> Reduce::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  const TensorType& x = inputs[0];
  const std::string_view name = kNames[int(kind)];
  if (kind == Kind::kMean) require_floating(name, "x", x);
  if (kind == Kind::kSum && x.dtype == DType::kBool)
    throw Error(Code::kDType, format("sum: x is {}", to_string(x))).hint("cast x to a number first");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= x.shape.rank())
      throw Error(Code::kShape, format("{}: axis {} of x {}", name, axes[i], x.shape))
          .hint(format("x has {} dimensions", x.shape.rank()));
    if (i && axes[i] <= axes[i - 1])
      throw Error(Code::kValue, format("{}: axis {} is named twice", name, axes[i])).hint("name every axis once");
  }
  Shape y = kept(x.shape, axes);
  if (!keepdims)
    for (size_t i = axes.size(); i-- > 0;) y = y.without(axes[i]);
  return {{x.dtype, y}};
}

std::vector<Value> Reduce::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return {Value{}};
  const Value x = node.input(0);
  const Shape full = x.shape(), narrow = kept(full, axes);
  Value dy = reshape(b, dys[0], narrow);
  switch (kind) {
    case Kind::kSum:
      break;
    case Kind::kMean:
      dy = multiply(b, dy, 1.0 / double(std::max<int64_t>(1, count(full, axes))));
      break;
    case Kind::kMax: {  // shared equally among ties, as in TensorFlow
      const Value wins = cast(b, equal(b, x, reshape(b, node.output(), narrow)), x.dtype());
      return {multiply(b, wins, divide(b, dy, sum(b, wins, axes, true)))};
    }
  }
  return {broadcast_to(b, dy, full)};
}

double Reduce::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return double(inputs[0].shape.size());
}

Value reduce(Builder& b, Reduce::Kind kind, Value x, std::vector<int> axes, bool keepdims) {
  const int rank = x.shape().rank();
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  for (int& a : axes) a += a < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  return b.add(std::make_shared<Reduce>(kind, std::move(axes), keepdims), {x});
}

}  // namespace millpond::ops
