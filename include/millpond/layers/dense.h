// Dense: y = activation(x kernel + bias) over the last axis.
// Memory: weights kernel [in, units] and bias [units]; y is kept for backward.
#pragma once
#include "millpond/activations.h"
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"

namespace millpond {

struct DenseOptions {
  ActivationFunction activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  std::string name = "";
};

class Dense : public Layer {
 public:
  explicit Dense(int64_t units, DenseOptions options = {});
  Dense(int64_t units, ActivationFunction activation, DenseOptions options = {});
};

}  // namespace millpond
