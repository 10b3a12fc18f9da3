#include "ops/step_size.h"

#include "ops/check.h"

namespace millpond::ops {

std::string StepSize::attributes() const { return format("{}: {}", rule.name, to_string(rule.scalars)); }

std::vector<TensorType> StepSize::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2 + rule.own.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view what = i == 0   ? "learning_rate"
                                  : i == 1 ? "iterations"
                                           : std::string_view(rule.own[i - 2].name);
    require_dtype("step_size", what, inputs[i], i == 1 ? DType::kInt64 : DType::kFloat32);
    require_shape("step_size", what, inputs[i], {});
  }
  std::vector<TensorType> types{{rule.dtype, {rule.made_scalars()}}};
  types.insert(types.end(), rule.own.size(), TensorType{DType::kFloat32, {}});
  return types;
}

std::vector<Value> StepSize::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return Operator::backward(b, node, dys);
}

std::vector<Value> step_size(Builder& b, const Rule& rule, Value learning_rate, Value iterations,
                             const std::vector<Value>& own) {
  std::vector<Value> operands{learning_rate, iterations};
  operands.insert(operands.end(), own.begin(), own.end());
  return b.add_all(std::make_shared<StepSize>(rule), std::move(operands));
}

}  // namespace millpond::ops
