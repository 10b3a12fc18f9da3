// The optimiser inside backward: where the gradient of a dense kernel is read by nothing but its own update, the
// gradient array disappears. With the gradient of the layer's input beside it, both become one sweep over the kernel.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/dense_backward.h"
#include "ops/dense_update.h"
#include "ops/matmul.h"
#include "ops/optimizer_step.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;

namespace {

struct Step {  // optimizer_step(weight, slots..., gradient, scalars)
  Node* node;
  const ops::OptimizerStep* op;
  Value gradient() const { return node->inputs[1 + op->rule.slot_count()]; }
  Value scalars() const { return node->inputs[2 + op->rule.slot_count()]; }
};

// What a weight of more than two dimensions was reshaped to for its product: the gradient before it is reshaped back.
Value flat(Value g) { return as<ops::Reshape>(g) ? g.node->inputs[0] : g; }

// The step that updates a bias with the sum of dz over its rows.
std::optional<Step> bias_step(const graph::Uses& uses, Value dz, const Step& kernel) {
  for (const graph::Uses::Use& u : uses.of(dz)) {
    const auto* sum = as<ops::Reduce>(u.node);
    if (!sum || sum->kind != ops::Reduce::Kind::kSum || sum->axes != std::vector<int>{0} || sum->keepdims) continue;
    Node* reader = uses.only_reader(u.node->output());
    if (as<ops::Reshape>(reader)) reader = uses.only_reader(reader->output());
    const auto* step = as<ops::OptimizerStep>(reader);
    if (!step || step->rule != kernel.op->rule) continue;
    const Step found{reader, step};
    if (flat(found.gradient()) == u.node->output() && found.scalars() == kernel.scalars()) return found;
  }
  return {};
}

// dx = dz kernel^T, if the graph has it.
Node* input_gradient(const graph::Uses& uses, Value dz, Value kernel) {
  for (const graph::Uses::Use& u : uses.of(dz)) {
    const auto* product = as<ops::MatMul>(u.node);
    if (product && u.operand == 0 && !product->transpose_a && product->transpose_b && product->epilogue.empty() &&
        graph::storage(u.node->inputs[1]) == kernel)
      return u.node;
  }
  return nullptr;
}

}  // namespace

void update(graph::Graph& graph) {
  graph::Builder b(graph);
  graph::Uses uses(graph);
  const size_t count = graph.nodes().size();
  std::unordered_set<const Node*> updated;  // steps of biases that have gone into a kernel's
  std::unordered_map<Value, std::vector<const Node*>, graph::ValueHash> readers;  // of variables, through views too
  for (const auto& n : graph.nodes())
    for (Value v : n->inputs)
      if (const Value s = graph::storage(v); s.node->role == graph::Role::kVariable) readers[s].push_back(n.get());
  for (size_t i = 0; i < count; ++i) {
    Node* n = graph.nodes()[i].get();
    const auto* op = as<ops::OptimizerStep>(n);
    if (!op) continue;
    const Step step{n, op};
    const Value g = flat(step.gradient());
    const auto* product = as<ops::MatMul>(g);
    if (!product || !product->transpose_a || product->transpose_b || !product->epilogue.empty()) continue;
    if (uses.only_reader(step.gradient()) != n || (g != step.gradient() && uses.only_reader(g) != step.gradient().node))
      continue;
    const Value x = g.node->inputs[0], dz = g.node->inputs[1], kernel = n->inputs[0];
    if (x.shape().rank() != 2 || dz.shape().rank() != 2 || kernel.dtype() != DType::kFloat32) continue;
    std::optional<Step> bias = bias_step(uses, dz, step);
    if (bias && !updated.insert(bias->node).second) bias.reset();  // two products whose sum has one bias
    Node* dx = input_gradient(uses, dz, kernel);
    // whoever else reads the kernel must be able to do so before dx exists
    if (dx)
      if (std::ranges::any_of(readers[kernel],
                              [&](const Node* r) { return r != n && r != dx && r->place > dx->place; }))
        dx = nullptr;

    const graph::Builder::Scope scope(b, *g.node);
    std::vector<Value> inputs{x, dz, step.scalars()};
    const int state = 1 + op->rule.slot_count();
    for (int k = 0; k < state; ++k) inputs.push_back(ops::reshape(b, n->inputs[k], g.shape()));
    if (bias)
      for (int k = 0; k < state; ++k) inputs.push_back(ops::reshape(b, bias->node->inputs[k], {dz.shape()[1]}));
    const std::vector<Value> outs =
        dx ? b.add_all(std::make_shared<ops::DenseBackward>(op->rule, bias.has_value()), inputs)
           : b.add_all(std::make_shared<ops::DenseUpdate>(op->rule, bias.has_value()), inputs);
    for (int k = 0; k < state; ++k) {
      uses.replace(n->output(k), ops::reshape(b, outs[k], kernel.shape()));
      if (bias) uses.replace(bias->node->output(k), ops::reshape(b, outs[state + k], bias->node->inputs[0].shape()));
    }
    if (dx) uses.replace(dx->output(), outs.back());
  }
}

}  // namespace millpond::passes
