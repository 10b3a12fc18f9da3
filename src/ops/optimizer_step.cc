#include "ops/optimizer_step.h"

#include "ops/check.h"

namespace millpond::ops {

std::string OptimizerStep::attributes() const { return to_string(rule); }

std::vector<TensorType> OptimizerStep::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(int(inputs.size()) == rule.slot_count() + 3);
  const TensorType& weight = inputs[0];
  require_floating("optimizer_step", "the weight", weight);
  for (int i = 1; i <= rule.slot_count() + 1; ++i) {
    const std::string_view what = i <= rule.slot_count() ? "a slot" : "the gradient";
    require_dtype("optimizer_step", what, inputs[i], weight.dtype);
    require_shape("optimizer_step", what, inputs[i], weight.shape);
  }
  require_dtype("optimizer_step", "the scalars of the step", inputs.back(), rule.dtype);
  if ((weight.dtype == DType::kFloat64) != (rule.dtype == DType::kFloat64))
    throw Error(Code::kDType, format("optimizer_step: the weight is {}, but the rule is for {}", to_string(weight),
                                     to_string(rule.dtype)))
        .hint("take Rule::for_weights");
  require_shape("optimizer_step", "the scalars of the step", inputs.back(), {rule.scalar_count()});
  return {inputs.begin(), inputs.begin() + 1 + rule.slot_count()};
}

std::vector<Value> OptimizerStep::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return Operator::backward(b, node, dys);
}

graph::MemoryFacts OptimizerStep::memory() const {
  graph::MemoryFacts facts;
  for (int i = 0; i <= rule.slot_count(); ++i) facts.in_place.push_back({i, i});
  return facts;
}

double OptimizerStep::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return rule.operations() * double(inputs[0].shape.size());
}

std::vector<Value> optimizer_step(Builder& b, const Rule& rule, Value weight, std::vector<Value> slots, Value gradient,
                                  Value scalars) {
  std::vector<Value> operands{weight};
  operands.insert(operands.end(), slots.begin(), slots.end());
  operands.insert(operands.end(), {gradient, scalars});
  return b.add_all(std::make_shared<OptimizerStep>(rule), std::move(operands));
}

}  // namespace millpond::ops
