// Reverse-mode differentiation as a pass: walks back from the values, asks each operator for its gradient rule, adds up
// where a value is read more than once. What it appends are ordinary nodes, so it can be applied to its own result.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/format.h"
#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "passes/flow_gradients.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;

namespace {

// Nodes that the values depend on, operands before readers.
std::vector<Node*> nodes_below(std::span<const Seeded> values) {
  std::vector<Node*> below;
  std::unordered_set<Node*> seen;
  std::vector<std::pair<Node*, size_t>> path;
  for (const Seeded& s : values) {
    if (seen.insert(s.value.node).second) path.emplace_back(s.value.node, 0);
    while (!path.empty()) {
      auto& [n, next] = path.back();
      if (next == n->inputs.size()) {
        below.push_back(n);
        path.pop_back();
      } else if (Node* x = n->inputs[next++].node; seen.insert(x).second) {
        path.emplace_back(x, 0);
      }
    }
  }
  return below;
}

Value seed_of(graph::Builder& b, const Seeded& s) {
  if (!is_floating(s.value.dtype()))
    throw Error(Code::kDType, format("gradients: a value of type {} has none", s.value.dtype()))
        .hint("cast it to a floating type first");
  if (s.seed) {
    if (s.seed.dtype() != s.value.dtype())
      throw Error(Code::kDType,
                  format("gradients: the seed has the type {}, but its value {}", s.seed.dtype(), s.value.dtype()));
    if (s.seed.shape() != s.value.shape())
      throw Error(Code::kShape,
                  format("gradients: the seed has the shape {}, but its value {}", s.seed.shape(), s.value.shape()));
    return s.seed;
  }
  const graph::Builder::Scope scope(b, s.value.node->layer, graph::Phase::kBackward);
  const bool scalar = s.value.shape().size() == 1;
  Tensor one(DType::kFloat64, scalar ? s.value.shape() : Shape{});
  one.values<double>()[0] = 1;
  const Value ones = b.constant(one.astype(s.value.dtype()), "one");
  return scalar ? ones : ops::broadcast_to(b, ones, s.value.shape());
}

}  // namespace

std::vector<Value> gradients(graph::Builder& b, Value loss, std::span<const Value> wrt) {
  if (loss.shape().size() != 1)
    throw Error(Code::kShape, format("gradients: the loss has the shape {}", loss.shape()))
        .hint("reduce it to a scalar first");
  const Seeded one[] = {{loss}};
  return gradients(b, one, wrt);
}

std::vector<Value> gradients(graph::Builder& b, std::span<const Seeded> values, std::span<const Value> wrt) {
  const std::vector<Node*> below = nodes_below(values);
  std::unordered_set<Node*> depends;
  for (Value v : wrt) depends.insert(v.node);
  for (Node* n : below)
    if (std::ranges::any_of(n->inputs, [&](Value v) { return depends.count(v.node) > 0; })) depends.insert(n);

  std::map<std::pair<Node*, int>, Value> of;  // gradient of a value so far
  for (const Seeded& s : values) {
    const Value seed = seed_of(b, s);
    Value& sum = of[{s.value.node, s.value.output}];
    sum = sum ? ops::add(b, sum, seed) : seed;
  }
  for (auto it = below.rbegin(); it != below.rend(); ++it) {
    Node* n = *it;
    if (n->role != graph::Role::kOperator || !depends.count(n)) continue;
    std::vector<Value> dys(n->types.size());
    bool any = false;
    for (size_t i = 0; i < dys.size(); ++i)
      if (const auto found = of.find({n, int(i)}); found != of.end()) dys[i] = found->second, any = true;
    if (!any) continue;
    const graph::Builder::Scope scope(b, n->layer, graph::Phase::kBackward);
    std::vector<Value> dxs;
    if (n->op->bodies().empty()) {
      dxs = n->op->backward(b, *n, dys);
    } else {
      std::vector<bool> wanted;
      for (Value v : n->inputs) wanted.push_back(depends.count(v.node) > 0);
      dxs = flow_backward(b, *n, dys, wanted);
    }
    for (size_t i = 0; i < dxs.size() && i < n->inputs.size(); ++i) {
      const Value x = n->inputs[i];
      if (!dxs[i] || !depends.count(x.node)) continue;
      Value& sum = of[{x.node, x.output}];
      sum = sum ? ops::add(b, sum, dxs[i]) : dxs[i];
    }
  }
  std::vector<Value> result;
  for (Value v : wrt) {
    const auto found = of.find({v.node, v.output});
    result.push_back(found == of.end() ? Value{} : found->second);
  }
  return result;
}

}  // namespace millpond::passes
