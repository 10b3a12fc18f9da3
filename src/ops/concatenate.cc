#include "ops/concatenate.h"

#include "ops/check.h"
#include "ops/slice.h"

namespace millpond::ops {

std::string Concatenate::attributes() const { return format("axis={}", axis); }

std::vector<TensorType> Concatenate::infer(std::span<const TensorType> inputs) const {
  if (inputs.empty())
    throw Error(Code::kUsage, "concatenate: nothing to put together").hint("give at least one tensor");
  const TensorType& first = inputs[0];
  if (axis < 0 || axis >= first.shape.rank())
    throw Error(Code::kShape, format("concatenate: axis {} of {}", axis, first.shape))
        .hint(format("it has {} dimensions", first.shape.rank()));
  int64_t total = 0;
  for (const TensorType& t : inputs) {
    require_dtype("concatenate", "an operand", t, first.dtype);
    if (t.shape.rank() != first.shape.rank() || t.shape.with(axis, 0) != first.shape.with(axis, 0))
      throw Error(Code::kShape, format("concatenate: {} and {} along axis {}", first.shape, t.shape, axis))
          .hint("all other dimensions must be equal");
    total += t.shape[axis];
  }
  return {{first.dtype, first.shape.with(axis, total)}};
}

std::vector<Value> Concatenate::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  std::vector<Value> dxs;
  std::vector<int64_t> starts(size_t(dys[0].shape().rank()), 0);
  for (const Value& x : node.inputs) {
    dxs.push_back(slice(b, dys[0], starts, x.shape()));
    starts[axis] += x.shape()[axis];
  }
  return dxs;
}

Value concatenate(Builder& b, std::vector<Value> xs, int axis) {
  if (axis < 0 && !xs.empty()) axis += xs[0].shape().rank();
  return b.add(std::make_shared<Concatenate>(axis), std::move(xs));
}

}  // namespace millpond::ops
