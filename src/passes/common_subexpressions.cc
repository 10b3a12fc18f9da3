// Two nodes with the same operator, attributes and operands compute the same: the earlier one serves both.
#include <map>
#include <tuple>

#include "base/format.h"
#include "passes/passes.h"

namespace millpond::passes {

namespace {

std::string key(const graph::Node& n) {
  if (n.role == graph::Role::kConstant) {
    if (n.constant.bytes() > 4_KiB) return {};
    return format("constant {} ", to_string(n.types[0])) +
           std::string(reinterpret_cast<const char*>(n.constant.data()), size_t(n.constant.bytes().value));
  }
  if (n.role != graph::Role::kOperator || !n.op->memory().in_place.empty()) return {};
  std::string k = format("{}[{}]", n.op->name(), n.op->attributes());
  for (graph::Value v : n.inputs) k += format(" {}.{}", v.node->id, v.output);
  return k;
}

}  // namespace

void common_subexpressions(graph::Graph& graph) {
  // Nodes are visited in topological order, so operands are already unified. Replacing one by one would scan the graph
  // for each; instead every node's operands are mapped when it is visited.
  std::map<std::string, graph::Node*> first;
  std::map<graph::Node*, graph::Node*> same;
  const auto unify = [&](graph::Value& v) {
    if (const auto it = same.find(v.node); it != same.end()) v.node = it->second;
  };
  for (const auto& n : graph.nodes()) {
    for (graph::Value& v : n->inputs) unify(v);
    const std::string k = key(*n);
    if (k.empty()) continue;
    const auto [it, fresh] = first.emplace(k, n.get());
    if (!fresh) same[n.get()] = it->second;
  }
  for (graph::Output& o : graph.outputs) unify(o.value);
  for (graph::Update& u : graph.updates) unify(u.value);
}

}  // namespace millpond::passes
