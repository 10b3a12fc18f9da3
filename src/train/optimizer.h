// OptimizerImpl: rule, learning rate, step count and slots. Slots are made with the first trace for training and placed,
// together, before the first step.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "millpond/optimizers.h"
#include "nn/network.h"
#include "ops/rule.h"
#include "runtime/variable.h"

namespace millpond::train {

struct OptimizerImpl {
  OptimizerImpl(std::string name, ops::Rule rule, double learning_rate);

  std::string name;
  ops::Rule rule;
  double rate;  // until the variable has a place
  runtime::Variable learning_rate, iterations;

  struct Slots {
    nn::Weight weight;
    std::vector<std::unique_ptr<runtime::Variable>> variables;
  };
  std::vector<Slots> slots;

  /// Makes the slots of these weights. Throws Error(kUsage) when it already serves other ones.
  void build(std::span<const nn::OwnedWeight> trainable);
  /// Everything that is kept between steps, in the order of placing.
  std::vector<runtime::Variable*> variables();
  /// Together with `beside`, in one segment.
  void place(runtime::Variable& beside);

  /// Adds the update of every weight to the graph, and the count of steps. A null gradient leaves its weight alone.
  void update(graph::Builder& b, std::span<const nn::OwnedWeight> trainable, std::span<const graph::Value> weights, std::span<const graph::Value> gradients);
};

}  // namespace millpond::train
