// ResNet-50 as in Keras's applications: a stem, four groups of 3, 4, 6 and 3 bottleneck blocks, a mean and a dense
// layer.
#include "cli/builtin.h"
#include "millpond/millpond.h"

namespace millpond::cli {
namespace {

SymbolicTensor conv_bn(const SymbolicTensor& x, int64_t filters, int size, int stride, bool activate,
                       const std::string& name) {
  SymbolicTensor y =
      Conv2D(filters, size, {.strides = stride, .padding = size == 1 ? "valid" : "same", .name = name + "_conv"})(x);
  y = BatchNormalization({.epsilon = 1.001e-5, .name = name + "_bn"})(y);
  return activate ? Activation(relu, name + "_relu")(y) : y;
}

// 1x1 to `filters`, 3x3, 1x1 to four times as many; added to x, which a 1x1 convolution fits to it in the first block
// of a group.
SymbolicTensor block(const SymbolicTensor& x, int64_t filters, int stride, bool fit, const std::string& name) {
  const SymbolicTensor shortcut = fit ? conv_bn(x, 4 * filters, 1, stride, false, name + "_0") : x;
  SymbolicTensor y = conv_bn(x, filters, 1, stride, true, name + "_1");
  y = conv_bn(y, filters, 3, 1, true, name + "_2");
  y = conv_bn(y, 4 * filters, 1, 1, false, name + "_3");
  return Activation(relu, name + "_out")(Add(name + "_add")({shortcut, y}));
}

}  // namespace

Model resnet50() {
  const Input image({224, 224, 3});
  SymbolicTensor x = ZeroPadding2D(3, "conv1_pad")(image);
  x = Conv2D(64, 7, {.strides = 2, .name = "conv1_conv"})(x);
  x = BatchNormalization({.epsilon = 1.001e-5, .name = "conv1_bn"})(x);
  x = Activation(relu, "conv1_relu")(x);
  x = ZeroPadding2D(1, "pool1_pad")(x);
  x = MaxPooling2D(3, {.strides = 2, .name = "pool1_pool"})(x);
  const int64_t filters[] = {64, 128, 256, 512};
  const int blocks[] = {3, 4, 6, 3};
  for (int group = 0; group < 4; ++group)
    for (int b = 0; b < blocks[group]; ++b)
      x = block(x, filters[group], b == 0 && group > 0 ? 2 : 1, b == 0,
                "conv" + std::to_string(group + 2) + "_block" + std::to_string(b + 1));
  x = GlobalAveragePooling2D({.name = "avg_pool"})(x);
  x = Dense(1000, softmax, {.name = "predictions"})(x);
  return Model({image}, {x}, "resnet50");
}

}  // namespace millpond::cli
