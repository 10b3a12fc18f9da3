// OptimizerImpl: rule, clipping, learning rate, step count and slots. Slots are made with the first trace for training
// and placed, together, before the first step.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "millpond/optimizers.h"
#include "nn/network.h"
#include "ops/rule.h"
#include "runtime/variable.h"

namespace millpond::train {

/// How gradients are clipped by their norms; 0 is not at all. (By value is part of the rule.)
struct NormClipping {
  double each = 0, global = 0;
  bool any() const { return each > 0 || global > 0; }
};

struct OptimizerImpl {
  OptimizerImpl(std::string name, ops::Rule rule, NormClipping clipping, double learning_rate);

  std::string name;
  ops::Rule rule;
  NormClipping clipping;
  double rate;  // until the variable has a place
  runtime::Variable learning_rate, iterations;
  /// Of float16's gradients: what the loss is multiplied by, and how many steps have gone well since it changed. Null
  /// where no layer computes so. Keras's LossScaleOptimizer with its own settings.
  struct LossScale {
    static constexpr double kInitial = 32768;
    static constexpr int64_t kGrowthSteps = 2000;
    runtime::Variable scale, good_steps;
  };
  std::unique_ptr<LossScale> loss_scale;
  std::vector<std::unique_ptr<runtime::Variable>> numbers;  // the rule's own

  struct Slots {
    nn::Weight weight;
    std::vector<std::unique_ptr<runtime::Variable>> variables;
  };
  std::vector<Slots> slots;

  /// What runs apply(): for each set of weights that have a gradient (train/apply.cc).
  std::shared_ptr<void> applying;

  /// Makes the slots of these weights. Throws Error(kUsage) when it already serves other ones.
  void build(std::span<const nn::OwnedWeight> trainable);
  /// Everything that is kept between steps, in the order of placing.
  std::vector<runtime::Variable*> variables();
  /// Together with `beside`, in one segment.
  void place(std::span<runtime::Variable* const> beside);

  /// Adds the update of every weight to the graph, and the count of steps. A null gradient leaves its weight alone.
  /// From the first trace of a model that needs it on.
  void scale_losses();
  /// The loss that gradients are taken of.
  graph::Value scaled(graph::Builder& b, graph::Value loss);
  void update(graph::Builder& b, std::span<const nn::OwnedWeight> trainable, std::span<const graph::Value> weights,
              std::span<const graph::Value> gradients);

 private:
  graph::Value read(graph::Builder& b, runtime::Variable& v) const { return b.variable(v.account(), v.type(), &v); }
  /// The scalars of each weight's step: those of the rule, and after them what its gradient is multiplied by.
  std::vector<graph::Value> with_scales(graph::Builder& b, graph::Value scalars,
                                        std::span<const graph::Value> gradients) const;
};

}  // namespace millpond::train
