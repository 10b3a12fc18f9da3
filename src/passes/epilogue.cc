// Element-wise work on a product, a convolution or the gradient of a dense layer's input, done on each tile before it
// is stored. Only what is ready before the product may be read, and only what others read is stored.
#include <algorithm>
#include <queue>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "ops/conv2d.h"
#include "ops/dense_backward.h"
#include "ops/matmul.h"
#include "passes/chain.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;

namespace {

constexpr size_t kMostInputs = 8, kMostResults = 4, kMostCode = 64;

// Which output is the product, or -1 when the node takes no epilogue.
int product_of(const Node& n) {
  if (const auto* op = as<ops::MatMul>(&n)) return op->epilogue.empty() ? 0 : -1;
  if (const auto* op = as<ops::Conv2D>(&n)) return op->epilogue.empty() ? 0 : -1;
  if (const auto* op = as<ops::DenseBackward>(&n)) return op->epilogue.empty() ? op->state() : -1;
  return -1;
}

std::shared_ptr<const graph::Operator> with_epilogue(const Node& n, ops::Expression e) {
  if (const auto* op = as<ops::MatMul>(&n))
    return std::make_shared<ops::MatMul>(op->transpose_a, op->transpose_b, std::move(e));
  if (const auto* op = as<ops::Conv2D>(&n)) return std::make_shared<ops::Conv2D>(op->window, op->groups, std::move(e));
  const auto* op = as<ops::DenseBackward>(&n);
  return std::make_shared<ops::DenseBackward>(op->rule, op->bias, std::move(e));
}

}  // namespace

void epilogue(graph::Graph& graph) {
  graph::Builder b(graph);
  graph::Uses uses(graph);
  const size_t count = graph.nodes().size();
  std::unordered_map<const Node*, size_t> position;
  for (size_t i = 0; i < count; ++i) position[graph.nodes()[i].get()] = i;
  std::unordered_set<const Node*> taken;
  const auto by_position = [&](const Node* p, const Node* q) { return position[p] < position[q]; };

  for (size_t i = 0; i < count; ++i) {
    Node& n = *graph.nodes()[i];
    const int at = product_of(n);
    if (at < 0 || n.types[at].dtype != DType::kFloat32) continue;
    const Value z = n.output(at);
    const auto joins = [&](Node* r) {
      if (!r || !position.count(r) || taken.count(r) || r->phase != n.phase || !fits_chain(*r, z.shape())) return false;
      return r->types[0].dtype == DType::kFloat32 || r->types[0].dtype == DType::kBool;
    };
    // Readers of z, their readers and so on, as far as their other operands are ready before the product.
    std::unordered_set<const Node*> group;
    const auto ready = [&](Value v) {
      if (v == z || group.count(v.node)) return true;
      v = graph::storage(v);  // a view of what is ready is ready
      return v.node->role != graph::Role::kOperator || (position.count(v.node) && position[v.node] < i);
    };
    std::vector<Value> todo{z};
    for (size_t k = 0; k < todo.size(); ++k) {
      std::vector<Node*> readers;
      for (const graph::Uses::Use& u : uses.of(todo[k]))
        if (joins(u.node) && !group.count(u.node)) readers.push_back(u.node);
      std::ranges::sort(readers, by_position);
      for (Node* r : readers)
        if (!group.count(r) && std::ranges::all_of(r->inputs, ready)) group.insert(r), todo.push_back(r->output());
    }
    if (group.empty()) continue;
    // What backward makes anew for them alone is made on the tile too: latest first, so that readers are known before.
    if (n.phase == graph::Phase::kBackward) {
      std::priority_queue<Node*, std::vector<Node*>, decltype(by_position)> makers(by_position);
      const auto look_at_makers = [&](const Node* reader) {
        for (Value v : reader->inputs)
          if (joins(v.node) && position[v.node] < i && !group.count(v.node)) makers.push(v.node);
      };
      for (const Value v : std::span(todo).subspan(1)) look_at_makers(v.node);
      while (!makers.empty()) {
        Node* m = makers.top();
        makers.pop();
        if (!group.count(m) && std::ranges::all_of(uses.of(m->output()), [&](const graph::Uses::Use& u) {
              return u.node && group.count(u.node);
            }))
          group.insert(m), look_at_makers(m);
      }
    }
    std::vector<const Node*> members(group.begin(), group.end());
    std::ranges::sort(members, by_position);
    Chain chain(z.shape());
    chain.first(z);
    std::vector<Value> held{z};  // values in registers, in order
    for (const Node* m : members) {
      Chain longer = chain;
      longer.absorb(*m);
      if (longer.size() > kMostCode || longer.operands().size() > kMostInputs) break;
      chain = std::move(longer);
      held.push_back(m->output());
    }
    if (held.size() == 1) continue;
    std::unordered_set<const Node*> inside;
    for (size_t k = 1; k < held.size(); ++k) inside.insert(held[k].node);
    std::vector<ops::Result> results;
    std::vector<Value> stored;
    bool fits = true;
    for (Value v : held) {
      if (!std::ranges::any_of(uses.of(v), [&](const graph::Uses::Use& u) { return !u.node || !inside.count(u.node); }))
        continue;
      fits &= v.dtype() == DType::kFloat32 && v.shape() == z.shape();
      results.push_back({chain.reg(v), ops::Collect::kStore, 1});
      stored.push_back(v);
    }
    if (!fits || results.empty() || results.size() > kMostResults) continue;
    for (const Node* m : inside) taken.insert(m);
    std::vector<Value> inputs = n.inputs;
    inputs.insert(inputs.end(), chain.operands().begin() + 1, chain.operands().end());
    const graph::Builder::Scope scope(b, n);
    const std::vector<Value> outs = b.add_all(with_epilogue(n, chain.finish(results)), inputs);
    position[outs[0].node] = i;
    for (int o = 0; o < at; ++o) uses.replace(n.output(o), outs[o]);
    for (size_t k = 0; k < stored.size(); ++k) uses.replace(stored[k], outs[at + int(k)], outs[0].node);
  }
}

}  // namespace millpond::passes
