#include "ops/select.h"

#include "ops/binary.h"
#include "ops/check.h"

namespace millpond::ops {

std::vector<TensorType> Select::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  require_dtype("select", "condition", inputs[0], DType::kBool);
  if (inputs[1].dtype != inputs[2].dtype)
    throw Error(Code::kDType, format("select: x is {}, but y is {}", to_string(inputs[1]), to_string(inputs[2])))
        .hint("cast one of them");
  try {
    return {{inputs[1].dtype, broadcast(inputs[0].shape, broadcast(inputs[1].shape, inputs[2].shape))}};
  } catch (const Error& e) {
    throw Error(e.code(), format("select: {}", e.text())).hint("make the dimensions equal, or one of them 1");
  }
}

std::vector<Value> Select::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  const Value condition = node.input(0), zero = b.scalar(dys[0].dtype(), 0);
  return {Value{}, sum_to(b, select(b, condition, dys[0], zero), node.input(1).shape()),
          sum_to(b, select(b, condition, zero, dys[0]), node.input(2).shape())};
}

Value select(Builder& b, Value condition, Value x, Value y) {
  return b.add(std::make_shared<Select>(), {condition, x, y});
}

}  // namespace millpond::ops
