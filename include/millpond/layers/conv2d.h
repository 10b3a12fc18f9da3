// Conv2D: convolution of images [height, width, channels] with `filters` kernels.
// Memory: weights kernel [height, width, channels / groups, filters] and bias [filters]. Followed by relu and
// max-pooling, the convolution's own output is never stored.
#pragma once
#include "millpond/activations.h"
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"

namespace millpond {

struct Conv2DOptions {
  Size2D strides = 1;
  Padding padding = "valid";
  Size2D dilation_rate = 1;
  int64_t groups = 1;
  ActivationFunction activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  std::string name = "";
};

class Conv2D : public Layer {
 public:
  Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options = {});
  Conv2D(int64_t filters, Size2D kernel_size, ActivationFunction activation, Conv2DOptions options = {});
};

}  // namespace millpond
