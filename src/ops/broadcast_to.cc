#include "ops/broadcast_to.h"

#include "ops/binary.h"
#include "ops/check.h"

namespace millpond::ops {

std::string BroadcastTo::attributes() const { return to_string(shape); }

std::vector<TensorType> BroadcastTo::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  const Shape& x = inputs[0].shape;
  bool fits = x.rank() <= shape.rank();
  for (int i = 1; fits && i <= x.rank(); ++i) fits = x[-i] == 1 || x[-i] == shape[-i];
  if (!fits)
    throw Error(Code::kShape, format("broadcast_to: x {} does not broadcast to {}", x, shape))
        .hint("every dimension of x must be 1 or equal, counted from the end");
  return {{inputs[0].dtype, shape}};
}

std::vector<Value> BroadcastTo::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return {dys[0] ? sum_to(b, dys[0], node.input(0).shape()) : Value{}};
}

Value broadcast_to(Builder& b, Value x, Shape shape) {
  return x.shape() == shape ? x : b.add(std::make_shared<BroadcastTo>(shape), {x});
}

}  // namespace millpond::ops
