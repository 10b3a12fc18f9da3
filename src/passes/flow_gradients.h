// Gradients of control flow. They are made here and not by the operators, because they need gradients of whole graphs.
#pragma once
#include "graph/builder.h"

namespace millpond::passes {

/// As Operator::backward, for an operator with bodies. `wanted`: of which operands gradients are asked for. It may
/// widen `node`, so that it saves what backward reads.
std::vector<graph::Value> flow_backward(graph::Builder& b, graph::Node& node, std::span<const graph::Value> dys,
                                        const std::vector<bool>& wanted);

}  // namespace millpond::passes
