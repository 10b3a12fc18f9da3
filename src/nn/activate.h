// activate: an activation as a composition of operators.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "millpond/activations.h"

namespace millpond::nn {

/// Keras's names, and "gelu_tanh".
std::vector<std::string> activation_names();
/// Knows "swish" too, an older name of silu.
std::optional<ActivationFunction> find_activation(std::string_view name);

graph::Value activate(graph::Builder& b, ActivationFunction f, graph::Value x);

}  // namespace millpond::nn
