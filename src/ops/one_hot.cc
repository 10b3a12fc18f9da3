#include "ops/one_hot.h"

#include "ops/check.h"

namespace millpond::ops {

std::string OneHot::attributes() const { return format("depth={} {}", depth, dtype); }

std::vector<TensorType> OneHot::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  require_integer("one_hot", "labels", inputs[0]);
  if (depth < 1) throw Error(Code::kValue, format("one_hot: a depth of {}", depth)).hint("give the number of classes");
  std::vector<int64_t> dims(inputs[0].shape.begin(), inputs[0].shape.end());
  dims.push_back(depth);
  return {{dtype, Shape(dims)}};
}

std::vector<Value> OneHot::backward(Builder&, const Node& node, std::span<const Value>) const {
  return no_gradients(node);
}

Value one_hot(Builder& b, Value labels, int64_t depth, DType dtype) {
  return b.add(std::make_shared<OneHot>(depth, dtype), {labels});
}

}  // namespace millpond::ops
