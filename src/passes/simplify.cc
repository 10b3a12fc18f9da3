// Rewrites that never cost anything: nothing added to zero, views of views, broadcasts that the reader does by itself,
// and a relu's gate that can look at the dropped-out value instead (so that only one of the two is kept for backward).
#include <algorithm>

#include "ops/broadcast_to.h"
#include "ops/dropout.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter_add.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;
using ops::Function;

namespace {

bool is_number(Value v, double wanted) {
  const auto c = uniform_constant(v);
  return c && *c == wanted;
}

/// What could be read instead of n's only output, or null.
Value simpler(graph::Builder& b, const Node& n, const graph::Uses& uses) {
  const Value out = n.output();
  if (const auto* op = as<ops::Reshape>(&n)) {
    const Value x = n.inputs[0];
    if (x.shape() == out.shape()) return x;
    // dimensions kept as 1 only to be dropped
    if (const auto* r = as<ops::Reduce>(x); r && r->keepdims) {
      Shape kept;
      for (int a = 0, dropped = 0; a < x.node->inputs[0].shape().rank(); ++a) {
        if (a == 0) kept = x.shape();
        if (std::ranges::count(r->axes, a)) kept = kept.without(a - dropped++);
      }
      if (kept == out.shape()) return ops::reduce(b, r->kind, x.node->inputs[0], r->axes, false);
    }
    if (as<ops::Reshape>(x)) return b.add(std::make_shared<ops::Reshape>(op->shape), {x.node->inputs[0]});
  }
  if (as<ops::BroadcastTo>(&n) && n.inputs[0].shape() == out.shape()) return n.inputs[0];
  if (const auto* op = as<ops::Reduce>(&n)) {
    // over dimensions of one: a reshape
    if (n.inputs[0].shape().size() == out.shape().size() && op->kind != ops::Reduce::Kind::kMax)
      return ops::reshape(b, n.inputs[0], out.shape());
    // the sum of a number repeated is a number; (mean of it: itself)
    if (const auto c = uniform_constant(n.inputs[0]);
        c && out.shape().size() == 1 && is_floating(out.dtype()) && op->kind == ops::Reduce::Kind::kSum)
      return ops::reshape(b, b.scalar(out.dtype(), *c * double(n.inputs[0].shape().size())), out.shape());
  }
  if (const auto* op = as<ops::Binary>(&n)) {
    const Value x = n.inputs[0], y = n.inputs[1];
    const bool same_x = x.type() == out.type(), same_y = y.type() == out.type();
    if (op->function == Function::k_multiply && same_x && is_number(y, 1)) return x;
    if (op->function == Function::k_multiply && same_y && is_number(x, 1)) return y;
    if (op->function == Function::k_divide && same_x && is_number(y, 1)) return x;
    if (op->function == Function::k_add && same_x && is_number(y, 0)) return x;
    if (op->function == Function::k_add && same_y && is_number(x, 0)) return y;
    if (op->function == Function::k_subtract && same_x && is_number(y, 0)) return x;
    // rows added to a table of zeros that is added to a table: rows added to that table
    if (op->function == Function::k_add && same_x && same_y)
      for (int i = 0; i < 2; ++i)
        if (const auto* s = as<ops::ScatterAdd>(n.inputs[i]); s && !s->onto && uses.only_reader(n.inputs[i]) == &n)
          return ops::scatter_add(b, n.inputs[i].node->inputs[0], n.inputs[i].node->inputs[1], s->count,
                                  n.inputs[1 - i]);
    // an operand that was broadcast for this reader: let the reader do it
    for (int i = 0; i < 2; ++i)
      if (as<ops::BroadcastTo>(n.inputs[i])) {
        const Value narrow = n.inputs[i].node->inputs[0], other = n.inputs[1 - i];
        if (broadcast(narrow.shape(), other.shape()) == out.shape())
          return i == 0 ? ops::binary(b, op->function, narrow, other) : ops::binary(b, op->function, other, narrow);
      }
    // a gate behind a view goes before it, to the product that made the gradient
    if (op->function == Function::k_gate && as<ops::Reshape>(x) && same_x && y.type() == out.type()) {
      const Value inner = x.node->inputs[0];
      return ops::reshape(b, ops::binary(b, Function::k_gate, inner, ops::reshape(b, y, inner.shape())), out.shape());
    }
    // gate(dropout(d), y) = gate(dropout(d), dropout(y)): where it was dropped both are 0, elsewhere the sign is the
    // same
    if (op->function == Function::k_gate)
      if (const auto* d = as<ops::Dropout>(x))
        for (const graph::Uses::Use& u : uses.of(y))
          if (const auto* e = as<ops::Dropout>(u.node); e && u.operand == 0 && u.node != x.node && e->salt == d->salt &&
                                                        e->rate == d->rate && u.node->inputs[1] == x.node->inputs[1])
            return ops::binary(b, Function::k_gate, x, u.node->output());
  }
  return {};
}

}  // namespace

void simplify(graph::Graph& graph) {
  graph::Builder b(graph);
  for (bool changed = true; changed;) {
    changed = false;
    graph::Uses uses(graph);
    const size_t count = graph.nodes().size();
    for (size_t i = 0; i < count; ++i) {
      Node& n = *graph.nodes()[i];
      if (n.role != graph::Role::kOperator) continue;
      const graph::Builder::Scope scope(b, n);
      if (const Value v = simpler(b, n, uses); v && v != n.output()) uses.replace(n.output(), v), changed = true;
    }
    graph.sort();
  }
}

}  // namespace millpond::passes
