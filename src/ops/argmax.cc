#include "ops/argmax.h"

#include "ops/check.h"

namespace millpond::ops {

std::vector<TensorType> ArgMax::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  const Shape& x = inputs[0].shape;
  if (x.rank() == 0 || x.back() == 0)
    throw Error(Code::kShape, format("argmax: x {} has no element along its last axis", x))
        .hint("give x at least one class");
  return {{DType::kInt32, x.without(-1)}};
}

std::vector<Value> ArgMax::backward(Builder&, const Node& node, std::span<const Value>) const {
  return no_gradients(node);
}

Value argmax(Builder& b, Value x) { return b.add(std::make_shared<ArgMax>(), {x}); }

}  // namespace millpond::ops
