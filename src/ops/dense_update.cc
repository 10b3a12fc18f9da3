#include "ops/dense_update.h"

#include "ops/check.h"
#include "ops/optimizer_step.h"

namespace millpond::ops {

std::string DenseUpdate::attributes() const { return format("{}{}", to_string(rule), bias ? " bias" : ""); }

std::vector<TensorType> DenseUpdate::infer(std::span<const TensorType> inputs) const {
  const int held = 1 + rule.slot_count();  // tensors of one parameter
  MP_ASSERT(int(inputs.size()) == 3 + held * (bias ? 2 : 1));
  const TensorType &x = inputs[0], &dz = inputs[1];
  require_floating(name(), "x", x);
  require_rank(name(), "x", x, 2);
  require_dtype(name(), "dz", dz, x.dtype);
  require_rank(name(), "dz", dz, 2);
  require_shape(name(), "dz", dz, {x.shape[0], dz.shape[1]});
  require_dtype(name(), "the scalars of the step", inputs[2], DType::kFloat32);
  require_shape(name(), "the scalars of the step", inputs[2], {rule.scalar_count()});
  for (size_t i = 3; i < inputs.size(); ++i) {
    const bool kernel = int(i) < 3 + held;
    require_dtype(name(), kernel ? "the kernel or a slot of it" : "the bias or a slot of it", inputs[i], x.dtype);
    require_shape(name(), kernel ? "the kernel or a slot of it" : "the bias or a slot of it", inputs[i],
                  kernel ? Shape{x.shape[1], dz.shape[1]} : Shape{dz.shape[1]});
  }
  return {inputs.begin() + 3, inputs.end()};
}

graph::MemoryFacts DenseUpdate::memory() const {
  graph::MemoryFacts facts;
  for (int i = 0; i < (1 + rule.slot_count()) * (bias ? 2 : 1); ++i) facts.in_place.push_back({i, 3 + i});
  return facts;
}

double DenseUpdate::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  double n = 2.0 * double(inputs[0].shape.size()) * double(inputs[1].shape[1]) +
             OptimizerStep(rule).flops(outputs.first(1), {});
  if (bias)
    n += double(inputs[1].shape.size()) +
         OptimizerStep(rule).flops(outputs.subspan(size_t(1 + rule.slot_count()), 1), {});
  return n;
}

}  // namespace millpond::ops
