// Optimizers: how a gradient changes a weight, by Keras's name ("adam") or as an object. A handle: copies share the
// learning rate, the count of steps and the slots. Memory: the slots, accounts
// slots/<optimizer>.<slot>/<layer>/<weight>, as many values for each weight as stand beside the optimizer below. The
// update is one pass over weight, gradient and slots inside the step. clipnorm and global_clipnorm keep whole gradients
// until their norms are known; without them most gradients are never stored.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millpond/eager.h"
#include "millpond/variable.h"

namespace millpond {

namespace train {
struct OptimizerImpl;
}

class Optimizer {
 public:
  /// "sgd", "adam", "rmsprop", ..., with Keras's defaults. Throws Error(kUsage) naming the known ones.
  Optimizer(std::string_view name);
  Optimizer(const char* name) : Optimizer(std::string_view(name)) {}
  Optimizer(const std::string& name) : Optimizer(std::string_view(name)) {}

  const std::string& name() const;
  double learning_rate() const;
  /// From the next step on. Throws Error(kUsage) for a negative number, infinity and NaN.
  void set_learning_rate(double learning_rate);
  /// Steps taken so far.
  int64_t iterations() const;

  /// One step by itself: every variable becomes what the rule makes of its gradient; one whose gradient is none stays as
  /// it is. The first call, or fit, says which variables it serves and makes their slots; later ones may leave some out.
  /// One program for all of them. Throws Error(kUsage) for a variable that it does not serve, or where all gradients are
  /// none; Error(kShape) for a gradient that does not fit.
  void apply(const EagerTensors& gradients, const Variables& variables);
  void apply_gradients(const std::vector<std::pair<EagerTensor, Variable>>& gradients_and_variables);
  /// The loss to take gradients of where losses are scaled (mixed_float16, once fit has begun that); otherwise itself.
  EagerTensor scale_loss(const EagerTensor& loss) const;
  /// Copies of the slots by account, "slots/adam.m/dense/kernel"; none before the first step.
  std::vector<std::pair<std::string, Tensor>> slots() const;

  /// The names that the constructor knows, "adagrad", "adam", ....
  static std::vector<std::string> known();

  const std::shared_ptr<train::OptimizerImpl>& impl() const { return impl_; }

 protected:
  explicit Optimizer(std::shared_ptr<train::OptimizerImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<train::OptimizerImpl> impl_;
};

// Every optimizer's options end alike, with Keras's meaning:
//   weight_decay     before the step, a weight loses learning rate * weight_decay of itself
//   clipnorm         a gradient whose norm is larger is scaled down to it
//   clipvalue        elements of a gradient are cut off there
//   global_clipnorm  all gradients are scaled down so that their norm together is no larger
//   name             of its slots' accounts
// At most one of the three ways to clip may be set; 0 is none.

/// No slot, or one with momentum.
struct SGDOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  std::string name = "sgd";
};
struct SGD : Optimizer {
  explicit SGD(double learning_rate = 0.01, SGDOptions options = {});
};

/// Two slots.
struct AdamOptions {
  double beta_1 = 0.9, beta_2 = 0.999;
  double epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  std::string name = "adam";
};
struct Adam : Optimizer {
  explicit Adam(double learning_rate = 0.001, AdamOptions options = {});
};

/// Adam that decays weights: two slots.
struct AdamWOptions {
  double weight_decay = 0.004;
  double beta_1 = 0.9, beta_2 = 0.999;
  double epsilon = 1e-7;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  std::string name = "adamw";
};
struct AdamW : Optimizer {
  explicit AdamW(double learning_rate = 0.001, AdamWOptions options = {});
};

/// Divides by a running mean of the gradient's size: one slot, one more with momentum, one more when centered.
struct RMSpropOptions {
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  std::string name = "rmsprop";
};
struct RMSprop : Optimizer {
  explicit RMSprop(double learning_rate = 0.001, RMSpropOptions options = {});
};

/// Divides by the size of all gradients so far: one slot.
struct AdagradOptions {
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  std::string name = "adagrad";
};
struct Adagrad : Optimizer {
  explicit Adagrad(double learning_rate = 0.001, AdagradOptions options = {});
};

/// Goes by the sign of a running mean, the same distance everywhere: one slot.
struct LionOptions {
  double beta_1 = 0.9, beta_2 = 0.99;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  std::string name = "lion";
};
struct Lion : Optimizer {
  explicit Lion(double learning_rate = 0.001, LionOptions options = {});
};

/// Adam with Nesterov's momentum: two slots and a number.
struct NadamOptions {
  double beta_1 = 0.9, beta_2 = 0.999;
  double epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;
  std::string name = "nadam";
};
struct Nadam : Optimizer {
  explicit Nadam(double learning_rate = 0.001, NadamOptions options = {});
};

}  // namespace millpond
