#include "millpond/layers/dense.h"
#include "base/format.h"
#include "nn/activate.h"
#include "nn/classes.h"
#include "ops/binary.h"
#include "ops/matmul.h"
#include "ops/reshape.h"

namespace millpond {
namespace nn {
namespace {

struct DenseImpl final : LayerImpl {
  int64_t units;
  DenseOptions o;
  Weight kernel, bias;
  explicit DenseImpl(int64_t n = 0, DenseOptions options = {}) : units(n), o(std::move(options)) {}
  void options(Describer& d) override {
    d.required("units", units, at_least(1));
    d.option("activation", o.activation);
    d.option("use_bias", o.use_bias);
    d.option("kernel_initializer", o.kernel_initializer);
    d.option("bias_initializer", o.bias_initializer);
    d.none({"kernel_regularizer", "bias_regularizer", "kernel_constraint", "bias_constraint", "quantization_config"});
  }

  bool keeps_mask() const override { return true; }
  void build(std::span<const TensorType> x) override {
    if (x[0].shape.rank() < 2)
      throw Error(Code::kShape, format("Dense \"{}\": a sample needs at least one dimension", name));
    kernel = add_weight("kernel", {known_dimension(*this, x[0], -1), units}, o.kernel_initializer);
    if (o.use_bias) bias = add_weight("bias", {units}, o.bias_initializer);
  }
  Values call(CallContext& c, std::span<const Value> x) override {
    Builder& b = c.builder();
    const Shape& shape = x[0].shape();
    const int64_t in = kernel->variable.type().shape[0];
    if (shape.rank() < 2 || shape.back() != in)
      throw Error(Code::kShape, format("Dense \"{}\": a sample of {} ends in {} values, but the kernel is for {}", name,
                                       shape.slice(1, shape.rank()), shape.back(), in));
    Value rows = as_float(c, x[0]);
    if (shape.rank() > 2) rows = ops::reshape(b, rows, {shape.size() / in, in});
    Value y = ops::matmul(b, rows, c.read(kernel));
    if (bias) y = ops::add(b, y, c.read(bias));
    if (o.activation.kind() != ActivationFunction::Kind::kSoftmax || shape.rank() == 2)
      y = activate(b, o.activation, y);
    if (shape.rank() > 2) y = ops::reshape(b, y, shape.with(-1, units));
    if (o.activation.kind() == ActivationFunction::Kind::kSoftmax && shape.rank() > 2)
      y = activate(b, o.activation, y);  // its loss looks for it here
    return y;
  }
};

}  // namespace

void declare_dense(LayerClasses& all) { all.add<DenseImpl>("Dense"); }
}  // namespace nn

Dense::Dense(int64_t units, DenseOptions options) : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::DenseImpl>("Dense", std::move(name), units, std::move(options));
}
Dense::Dense(int64_t units, ActivationFunction activation, DenseOptions options)
    : Dense(units, (options.activation = activation, std::move(options))) {}

}  // namespace millpond
