#include "ops/reshape.h"

#include "ops/check.h"

namespace millpond::ops {

std::string Reshape::attributes() const { return to_string(shape); }

std::vector<TensorType> Reshape::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  const Shape& x = inputs[0].shape;
  if (x.size() != shape.size())
    throw Error(Code::kShape, format("reshape: x {} has {} elements, but {} has {}", x, x.size(), shape, shape.size()))
        .hint("the number of elements must stay");
  return {{inputs[0].dtype, shape}};
}

std::vector<Value> Reshape::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return {dys[0] ? reshape(b, dys[0], node.input(0).shape()) : Value{}};
}

Value reshape(Builder& b, Value x, Shape shape) {
  return x.shape() == shape ? x : b.add(std::make_shared<Reshape>(shape), {x});
}

}  // namespace millpond::ops
