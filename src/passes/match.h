// Small questions that pattern passes ask of nodes.
#pragma once
#include <optional>

#include "graph/graph.h"
#include "graph/operator.h"
#include "ops/binary.h"
#include "ops/extent.h"
#include "ops/unary.h"

namespace millpond::passes {

/// The node's operator if it is an Op, else null.
template <class Op>
const Op* as(const graph::Node* n) {
  return n && n->role == graph::Role::kOperator ? dynamic_cast<const Op*>(n->op.get()) : nullptr;
}
template <class Op>
const Op* as(graph::Value v) {
  return as<Op>(v.node);
}
inline bool is(const graph::Node* n, ops::Function f) {
  if (const auto* u = as<ops::Unary>(n)) return u->function == f;
  if (const auto* u = as<ops::Binary>(n)) return u->function == f;
  return false;
}
inline bool is(graph::Value v, ops::Function f) { return is(v.node, f); }

/// The number a constant of one element, or a constant repeated everywhere, holds.
std::optional<double> uniform_constant(graph::Value v);

using ops::extent_in;

}  // namespace millpond::passes
