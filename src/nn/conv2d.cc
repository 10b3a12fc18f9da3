#include "ops/conv2d.h"

#include "base/format.h"
#include "millpond/layers/conv2d.h"
#include "nn/activate.h"
#include "nn/classes.h"
#include "nn/window.h"
#include "ops/binary.h"

namespace millpond {
namespace nn {
namespace {

struct Conv2DImpl final : LayerImpl {
  int64_t filters;
  Size2D size;
  Conv2DOptions o;
  Weight kernel, bias;
  explicit Conv2DImpl(int64_t n = 0, Size2D s = 1, Conv2DOptions options = {})
      : filters(n), size(s), o(std::move(options)) {}
  void options(Describer& d) override {
    d.required("filters", filters, at_least(1));
    d.required("kernel_size", size, at_least(1));
    d.option("strides", o.strides, at_least(1));
    d.option("padding", o.padding);
    d.fixed("data_format", "\"channels_last\"");
    d.option("dilation_rate", o.dilation_rate, at_least(1));
    d.option("groups", o.groups, at_least(1));
    d.option("activation", o.activation);
    d.option("use_bias", o.use_bias);
    d.option("kernel_initializer", o.kernel_initializer);
    d.option("bias_initializer", o.bias_initializer);
    d.none({"kernel_regularizer", "bias_regularizer", "activity_regularizer", "kernel_constraint", "bias_constraint"});
    d.outdated({"rank"});
  }

  void build(std::span<const TensorType> x) override {
    expect_rank(*this, x[0], 3, "images [height, width, channels]");
    const int64_t channels = known_dimension(*this, x[0], -1);
    if (channels % o.groups || filters % o.groups)
      throw Error(Code::kShape, format("Conv2D \"{}\": {} groups do not divide {} channels and {} filters", name,
                                       o.groups, channels, filters));
    kernel = add_weight("kernel", {size.height, size.width, channels / o.groups, filters}, o.kernel_initializer);
    if (o.use_bias) bias = add_weight("bias", {filters}, o.bias_initializer);
  }
  Values call(CallContext& c, std::span<const Value> x) override {
    Builder& b = c.builder();
    expect_rank(*this, x[0].type(), 3, "images [height, width, channels]");
    const int64_t channels = kernel->variable.type().shape[2] * o.groups;
    if (x[0].shape().back() != channels)
      throw Error(Code::kShape, format("Conv2D \"{}\": images have {} channels, but the kernel is for {}", name,
                                       x[0].shape().back(), channels));
    const ops::Window w = window_for(*this, x[0].shape(), size, o.strides, o.dilation_rate, o.padding);
    Value y = ops::conv2d(b, as_float(c, x[0]), c.read(kernel), w, o.groups);
    if (bias) y = ops::add(b, y, c.read(bias));
    return activate(b, o.activation, y);
  }
};

}  // namespace

void declare_conv2d(LayerClasses& all) { all.add<Conv2DImpl>("Conv2D"); }
}  // namespace nn

Conv2D::Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options) : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::Conv2DImpl>("Conv2D", std::move(name), filters, kernel_size, std::move(options));
}
Conv2D::Conv2D(int64_t filters, Size2D kernel_size, ActivationFunction activation, Conv2DOptions options)
    : Conv2D(filters, kernel_size, (options.activation = activation, std::move(options))) {}

}  // namespace millpond
