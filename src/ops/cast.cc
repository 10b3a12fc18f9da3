#include "ops/cast.h"

#include "ops/check.h"

namespace millpond::ops {

std::string Cast::attributes() const { return std::string(to_string(dtype)); }

std::vector<TensorType> Cast::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  return {{dtype, inputs[0].shape}};
}

std::vector<Value> Cast::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  const DType from = node.input(0).dtype();
  if (!dys[0] || !is_floating(from) || !is_floating(dtype)) return {Value{}};
  return {cast(b, dys[0], from)};
}

Value cast(Builder& b, Value x, DType dtype) {
  return x.dtype() == dtype ? x : b.add(std::make_shared<Cast>(dtype), {x});
}

}  // namespace millpond::ops
