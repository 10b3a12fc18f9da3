#include "ops/step_size.h"

#include "ops/check.h"

namespace millpond::ops {

std::string StepSize::attributes() const { return to_string(rule); }

std::vector<TensorType> StepSize::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2);
  require_dtype("step_size", "learning_rate", inputs[0], DType::kFloat32);
  require_shape("step_size", "learning_rate", inputs[0], {});
  require_dtype("step_size", "iterations", inputs[1], DType::kInt64);
  require_shape("step_size", "iterations", inputs[1], {});
  return {{DType::kFloat32, {2}}};
}

std::vector<Value> StepSize::backward(Builder& b, const Node& node, std::span<const Value> dys) const { return Operator::backward(b, node, dys); }

Value step_size(Builder& b, Value learning_rate, Value iterations, const Rule& rule) {
  return b.add(std::make_shared<StepSize>(rule), {learning_rate, iterations});
}

}  // namespace millpond::ops
