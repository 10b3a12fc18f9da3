// Optimizers: how a gradient changes a weight, by Keras's name ("adam") or as an object. A handle: copies share the learning
// rate, the count of steps and the slots.
// Memory: the slots, accounts slots/<optimizer>.<slot>/<layer>/<weight>: none for plain SGD, one value a weight with momentum,
// two for Adam and AdamW. The update is one pass over weight, gradient and slots inside the step.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace millpond {

namespace train {
struct OptimizerImpl;
}

class Optimizer {
 public:
  /// "sgd", "adam" or "adamw", with Keras's defaults. Throws Error(kUsage) naming the known ones.
  Optimizer(std::string_view name);
  Optimizer(const char* name) : Optimizer(std::string_view(name)) {}
  Optimizer(const std::string& name) : Optimizer(std::string_view(name)) {}

  const std::string& name() const;
  double learning_rate() const;
  /// From the next step on. Throws Error(kUsage) for a negative number, infinity and NaN.
  void set_learning_rate(double learning_rate);
  /// Steps taken so far.
  int64_t iterations() const;

  const std::shared_ptr<train::OptimizerImpl>& impl() const { return impl_; }

 protected:
  explicit Optimizer(std::shared_ptr<train::OptimizerImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<train::OptimizerImpl> impl_;
};

struct SGDOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  std::string name = "sgd";
};
struct SGD : Optimizer {
  explicit SGD(double learning_rate = 0.01, SGDOptions options = {});
};

struct AdamOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  double weight_decay = 0;
  std::string name = "adam";
};
struct Adam : Optimizer {
  explicit Adam(double learning_rate = 0.001, AdamOptions options = {});
};

struct AdamWOptions {
  double weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  std::string name = "adamw";
};
struct AdamW : Optimizer {
  explicit AdamW(double learning_rate = 0.001, AdamWOptions options = {});
};

}  // namespace millpond
