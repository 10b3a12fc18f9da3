#include "ops/softmax.h"

#include "ops/binary.h"
#include "ops/check.h"
#include "ops/reduce.h"

namespace millpond::ops {

std::vector<TensorType> Softmax::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  require_floating("softmax", "x", inputs[0]);
  if (inputs[0].shape.rank() == 0)
    throw Error(Code::kShape, "softmax: x is a scalar").hint("give x a last axis to sum over");
  return {inputs[0]};
}

std::vector<Value> Softmax::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return {Value{}};
  const Value y = node.output(), dy = dys[0];
  return {multiply(b, y, subtract(b, dy, sum(b, multiply(b, dy, y), {-1}, true)))};
}

double Softmax::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 4 * double(inputs[0].shape.size());  // maximum, difference and exponential, sum, scale
}

Value softmax(Builder& b, Value x) { return b.add(std::make_shared<Softmax>(), {x}); }

}  // namespace millpond::ops
