// Reverse-mode differentiation as a pass: walks back from the loss, asks each operator for its gradient rule, adds up where
// a value is read more than once. What it appends are ordinary nodes, so it can be applied to its own result.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/format.h"
#include "ops/binary.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;

std::vector<Value> gradients(graph::Builder& b, Value loss, std::span<const Value> wrt) {
  if (loss.shape().size() != 1)
    throw Error(Code::kShape, format("gradients: the loss has the shape {}", loss.shape())).hint("reduce it to a scalar first");

  // Nodes that the loss depends on, operands before readers.
  std::vector<Node*> below;
  std::unordered_set<Node*> seen{loss.node};
  std::vector<std::pair<Node*, size_t>> path{{loss.node, 0}};
  while (!path.empty()) {
    auto& [n, next] = path.back();
    if (next == n->inputs.size()) {
      below.push_back(n);
      path.pop_back();
    } else if (Node* x = n->inputs[next++].node; seen.insert(x).second) {
      path.emplace_back(x, 0);
    }
  }
  std::unordered_set<Node*> depends;
  for (Value v : wrt) depends.insert(v.node);
  for (Node* n : below)
    if (std::ranges::any_of(n->inputs, [&](Value v) { return depends.count(v.node) > 0; })) depends.insert(n);

  std::map<std::pair<Node*, int>, Value> of;  // gradient of a value so far
  {
    const graph::Builder::Scope scope(b, loss.node->layer, graph::Phase::kBackward);
    Tensor one(DType::kFloat64, loss.shape());
    one.values<double>()[0] = 1;
    of[{loss.node, loss.output}] = b.constant(one.astype(loss.dtype()), "one");
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
    const std::vector<Value> dxs = n->op->backward(b, *n, dys);
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
