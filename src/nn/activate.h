// activate: an activation as a composition of operators.
#pragma once
#include "graph/builder.h"
#include "millpond/activations.h"

namespace millpond::nn {

graph::Value activate(graph::Builder& b, ActivationFunction f, graph::Value x);

}  // namespace millpond::nn
