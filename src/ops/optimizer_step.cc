#include "ops/optimizer_step.h"

#include "ops/check.h"

namespace millpond::ops {

std::string OptimizerStep::attributes() const { return to_string(rule); }

std::vector<TensorType> OptimizerStep::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(int(inputs.size()) == rule.slots() + 3);
  const TensorType& weight = inputs[0];
  require_floating("optimizer_step", "the weight", weight);
  for (int i = 1; i <= rule.slots() + 1; ++i) {
    const std::string_view what = i <= rule.slots() ? "a slot" : "the gradient";
    require_dtype("optimizer_step", what, inputs[i], weight.dtype);
    require_shape("optimizer_step", what, inputs[i], weight.shape);
  }
  require_dtype("optimizer_step", "step_size", inputs.back(), DType::kFloat32);
  require_shape("optimizer_step", "step_size", inputs.back(), {2});
  return {inputs.begin(), inputs.begin() + 1 + rule.slots()};
}

std::vector<Value> OptimizerStep::backward(Builder& b, const Node& node, std::span<const Value> dys) const { return Operator::backward(b, node, dys); }

graph::MemoryFacts OptimizerStep::memory() const {
  graph::MemoryFacts facts;
  for (int i = 0; i <= rule.slots(); ++i) facts.in_place.push_back({i, i});
  return facts;
}

double OptimizerStep::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  static constexpr double kOperations[] = {2, 4, 11};
  return kOperations[int(rule.kind)] * double(inputs[0].shape.size());
}

std::vector<Value> optimizer_step(Builder& b, const Rule& rule, Value weight, std::vector<Value> slots, Value gradient, Value step_size) {
  std::vector<Value> operands{weight};
  operands.insert(operands.end(), slots.begin(), slots.end());
  operands.insert(operands.end(), {gradient, step_size});
  return b.add_all(std::make_shared<OptimizerStep>(rule), std::move(operands));
}

}  // namespace millpond::ops
