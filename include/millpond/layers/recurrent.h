// Layers for sequences [length, width]: LSTM, and Masking, which says which steps count.
#pragma once
#include "millpond/activations.h"
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"

namespace millpond {

struct LSTMOptions {
  ActivationFunction activation = activations::tanh;
  ActivationFunction recurrent_activation = activations::sigmoid;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;  // the bias of the forget gate begins at 1
  double dropout = 0;            // of the inputs; the same for all steps
  double recurrent_dropout = 0;  // of what is carried over
  std::optional<uint64_t> seed = {};
  bool return_sequences = false;  // what every step gives, instead of the last
  bool return_state = false;      // and the two states after the last step: call it with call_all
  bool go_backwards = false;
  std::string name = "";
};

/// Long short-term memory: gates of the input and of what the last step gave decide what is kept in a state.
/// Called on a sequence, or on a sequence and two first states. Steps that its mask leaves out keep state and output.
/// Memory: weights kernel [width, 4 units], recurrent_kernel [units, 4 units], bias; the workspace of one step,
/// whatever the length; while training, seven values of `units` for each step and sample, of which everything else is
/// made again.
class LSTM : public Layer {
 public:
  explicit LSTM(int64_t units, LSTMOptions options = {});
};

/// Steps all of whose values are `mask_value` do not count for the layers behind that look at masks. Its result has
/// zeros there. Memory: the mask, one byte a step.
class Masking : public Layer {
 public:
  explicit Masking(double mask_value = 0, std::string name = "");
};

}  // namespace millpond
