#include "ops/while_loop.h"

#include <limits>

#include "base/format.h"

namespace millpond::ops {

std::string WhileLoop::attributes() const {
  return format("carries={} most={} condition={} body={}", carries, most, condition->number, body->number);
}

double WhileLoop::flops(std::span<const TensorType>, std::span<const TensorType>) const {
  if (most == 0) return std::numeric_limits<double>::infinity();
  return (flops_of(condition->graph) + flops_of(body->graph)) * double(most);
}

std::vector<TensorType> WhileLoop::infer(std::span<const TensorType> inputs) const {
  expect_inputs(*condition, inputs, "while_loop: the condition");
  expect_inputs(*body, inputs, "while_loop: the step");
  const std::vector<TensorType> asked = condition->outputs();
  if (asked.size() != 1 || asked[0].dtype != DType::kBool || asked[0].shape.size() != 1)
    throw Error(Code::kShape, format("while_loop: the condition gives {} values, the first {}", asked.size(),
                                     asked.empty() ? "none" : to_string(asked[0])))
        .hint("it must give one bool");
  const std::vector<TensorType> types = body->outputs();
  if (int(types.size()) != carries)
    throw Error(Code::kShape, format("while_loop: {} carries, but a step makes {}", carries, types.size()));
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i] != inputs[i])
      throw Error(Code::kShape, format("while_loop: carry {} is {}, but a step makes it {}", i, to_string(inputs[i]),
                                       to_string(types[i])))
          .hint("a carry has the same shape and dtype in every step");
  return types;
}

std::vector<Value> WhileLoop::backward(Builder&, const Node& node, std::span<const Value>) const {
  throw Error(Code::kUnsupported, "while_loop has no gradient: how many steps there will be is not known beforehand")
      .hint("use scan over a bounded number of steps, with a select that keeps the carries once they are done")
      .with("layer", node.layer);
}

std::vector<Value> while_loop(Builder& b, std::span<const Value> carries, std::span<const Value> shared,
                              const Write& condition, const Write& step, int64_t most) {
  std::vector<Value> operands(carries.begin(), carries.end());
  operands.insert(operands.end(), shared.begin(), shared.end());
  std::vector<TensorType> types;
  for (Value v : operands) types.push_back(v.type());
  BodyRef asked = write_body(b.layer(), types, condition), body = write_body(b.layer(), types, step);
  return b.add_all(std::make_shared<WhileLoop>(std::move(asked), std::move(body), int(carries.size()), most),
                   std::move(operands));
}

}  // namespace millpond::ops
