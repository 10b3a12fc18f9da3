// Activations as layers of their own. Memory: as in activations.h.
#pragma once
#include "millpond/activations.h"
#include "millpond/layers/layer.h"

namespace millpond {

class Activation : public Layer {
 public:
  explicit Activation(ActivationFunction activation, std::string name = "");
};

struct ReLUOptions {
  std::optional<double> max_value = {};
  double negative_slope = 0;
  double threshold = 0;
  std::string name = "";
};

class ReLU : public Layer {
 public:
  explicit ReLU(ReLUOptions options = {});
};

class Softmax : public Layer {
 public:
  explicit Softmax(int axis = -1, std::string name = "");
};

}  // namespace millpond
