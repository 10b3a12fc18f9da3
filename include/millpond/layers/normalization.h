// Normalization: BatchNormalization by the statistics of a batch (moving averages when predicting), in which only
// counts what counts by its mask; LayerNormalization by those of each sample. Memory: gamma and beta, for a batch
// also moving_mean and moving_variance; backward reads x and two values a channel or row.
#pragma once
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"

namespace millpond {

struct BatchNormalizationOptions {
  int axis = -1;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;  // has beta
  bool scale = true;   // has gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  std::string name = "";
};

class BatchNormalization : public Layer {
 public:
  explicit BatchNormalization(BatchNormalizationOptions options = {});
};

struct LayerNormalizationOptions {
  std::vector<int> axis = {-1};
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  std::string name = "";
};

class LayerNormalization : public Layer {
 public:
  explicit LayerNormalization(LayerNormalizationOptions options = {});
};

}  // namespace millpond
