// own_outputs: every output is a value of its own that a call makes, so that it can be made where the caller wants it.
// What is an input, a variable, a constant, a view, made in place, kept in a variable, or another output as well is
// copied.
#include <algorithm>

#include "ops/broadcast_to.h"
#include "passes/passes.h"

namespace millpond::passes {

void own_outputs(graph::Graph& graph) {
  graph::Builder b(graph);
  std::vector<graph::Value> taken;
  const auto own = [&](graph::Value v) {
    if (v.node->role != graph::Role::kOperator) return false;
    const graph::MemoryFacts facts = v.node->op->memory();
    if (facts.view || !facts.in_place.empty() || std::ranges::find(taken, v) != taken.end()) return false;
    return std::ranges::none_of(graph.updates, [&](const graph::Update& u) { return u.value == v; });
  };
  for (graph::Output& o : graph.outputs) {
    if (!own(o.value)) {
      const graph::Builder::Scope scope(b, o.value.node->layer, o.value.node->phase);
      o.value =
          b.add(std::make_shared<ops::BroadcastTo>(o.value.shape()), {o.value});  // the function would leave it out
    }
    taken.push_back(o.value);
  }
}

}  // namespace millpond::passes
