#include "millpond/layers/input.h"

#include "base/format.h"
#include "nn/classes.h"
#include "nn/network.h"

namespace millpond {
namespace nn {

void InputImpl::describe(Describer& d) {
  d.option("name", name);
  d.batch_shape("batch_shape", sample.shape);
  d.option("dtype", sample.dtype);
  d.fixed("sparse", "false");
  d.fixed("ragged", "false");
  d.fixed("optional", "false");
}

void InputImpl::settle() {
  if (sample.shape.rank() >= Shape::kMaxRank)
    throw Error(Code::kShape, format("Input: a sample has at most {} dimensions, this one {}", Shape::kMaxRank - 1,
                                     sample.shape.rank()));
  expect_countable(*this, sample.shape, "a sample");
  built = true;
}

SymbolicTensor tensor_of(const std::shared_ptr<LayerImpl>& input) {
  const auto& of = static_cast<const InputImpl&>(*input);
  auto node = std::make_shared<CallNode>();
  node->layer = input;
  node->types = {{of.sample.dtype, of.sample.shape.with_front(1)}};
  return SymbolicTensor(std::move(node), 0);
}

void declare_input(LayerClasses& all) { all.add<InputImpl>("InputLayer"); }
}  // namespace nn

Input::Input(Shape shape, DType dtype, std::string name)
    : SymbolicTensor(
          nn::tensor_of(nn::make_layer<nn::InputImpl>("InputLayer", std::move(name), nn::TensorType{dtype, shape}))) {}

Layer::Layer(const Input& input) : impl_(input.node()->layer) {}

}  // namespace millpond
