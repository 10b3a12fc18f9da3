#include "millpond/layers/activation.h"

#include "nn/activate.h"
#include "nn/classes.h"
#include "nn/layer.h"
#include "ops/binary.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {
namespace {

struct ActivationImpl final : LayerImpl {
  ActivationFunction f;
  explicit ActivationImpl(ActivationFunction function = linear) : f(function) {}
  void options(Describer& d) override { d.required("activation", f); }
  bool keeps_mask() const override { return true; }
  Values call(CallContext& c, std::span<const Value> x) override { return activate(c.builder(), f, as_float(c, x[0])); }
};

struct ReLUImpl final : LayerImpl {  // max_value above, x between, negative_slope * (x - threshold) below the threshold
  ReLUOptions o;
  explicit ReLUImpl(ReLUOptions options = {}) : o(std::move(options)) {}
  void options(Describer& d) override {
    d.option("max_value", o.max_value, at_least(0));
    d.option("negative_slope", o.negative_slope, at_least(0));
    d.option("threshold", o.threshold, at_least(0));
  }
  bool keeps_mask() const override { return true; }
  Values call(CallContext& c, std::span<const Value> x) override {
    using ops::Function;
    Builder& b = c.builder();
    const Value in = as_float(c, x[0]);
    Value y;
    if (o.threshold == 0 && o.negative_slope == 0) {
      y = ops::relu(b, in);
    } else {
      const Value below = ops::multiply(b, ops::add(b, in, -o.threshold), o.negative_slope);
      y = ops::select(b, ops::binary(b, Function::k_greater, in, o.threshold), in, below);
    }
    return o.max_value ? ops::binary(b, Function::k_minimum, y, *o.max_value) : y;
  }
};

struct SoftmaxImpl final : LayerImpl {
  int axis;
  explicit SoftmaxImpl(int a = -1) : axis(a) {}
  void options(Describer& d) override { d.option("axis", axis); }
  Values call(CallContext& c, std::span<const Value> x) override {
    Builder& b = c.builder();
    const Value in = as_float(c, x[0]);
    const int rank = in.shape().rank(), a = canonical_axis(*this, axis, rank);
    if (a == rank - 1) return ops::softmax(b, in);
    std::vector<int> swap(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) swap[size_t(i)] = i;
    std::swap(swap[size_t(a)], swap.back());
    return ops::transpose(b, ops::softmax(b, ops::transpose(b, in, swap)), swap);
  }
};

}  // namespace

void declare_activation(LayerClasses& all) {
  all.add<ActivationImpl>("Activation");
  all.add<ReLUImpl>("ReLU");
  all.add<SoftmaxImpl>("Softmax");
}
}  // namespace nn

Activation::Activation(ActivationFunction activation, std::string name)
    : Layer(nn::make_layer<nn::ActivationImpl>("Activation", std::move(name), activation)) {}

ReLU::ReLU(ReLUOptions options) : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::ReLUImpl>("ReLU", std::move(name), std::move(options));
}

Softmax::Softmax(int axis, std::string name)
    : Layer(nn::make_layer<nn::SoftmaxImpl>("Softmax", std::move(name), axis)) {}

}  // namespace millpond
