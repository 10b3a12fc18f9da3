// Operators that read only constants are computed now, unless their result is large: memory before arithmetic.
#include <algorithm>

#include "passes/passes.h"

namespace millpond::passes {

namespace {
constexpr Bytes kLargest = 16_KiB;
}

void fold_constants(graph::Graph& graph, const Evaluator& evaluate) {
  graph::Builder b(graph);
  graph::Uses uses(graph);
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    graph::Node& n = *graph.nodes()[i];
    if (n.role != graph::Role::kOperator || n.inputs.empty() || !n.op->memory().in_place.empty() ||
        !n.op->bodies().empty())
      continue;
    if (!std::ranges::all_of(n.inputs, [](graph::Value v) { return v.node->role == graph::Role::kConstant; })) continue;
    Bytes total;
    for (const auto& t : n.types) total += t.bytes();
    if (total > kLargest) continue;
    std::vector<Tensor> inputs;
    for (graph::Value v : n.inputs) inputs.push_back(v.node->constant);
    std::vector<Tensor> results = evaluate(*n.op, inputs, n.types);
    const graph::Builder::Scope scope(b, n);
    for (size_t o = 0; o < results.size(); ++o) uses.replace(n.output(int(o)), b.constant(std::move(results[o])));
  }
}

}  // namespace millpond::passes
