// assign_updates: every update ends in its variable. The new value is made in the variable's own bytes where nobody
// reads the old one any more; elsewhere ops::Assign copies it there. Something must do this, so the pass always runs;
// `in_variables` says whether copies are avoided.
#include <algorithm>

#include "ops/assign.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Role;
using graph::storage;
using graph::Value;

void assign_updates(graph::Graph& graph, bool in_variables) {
  // May `value` be made in the variable's own bytes? Not when somebody reads the old value later, or while it is being
  // made.
  const auto direct = [&](Value value, Value variable) {
    if (value.node->role != Role::kOperator || value.node->op->memory().view ||
        !value.node->op->memory().in_place.empty())
      return false;
    if (std::ranges::count_if(graph.updates, [&](const graph::Update& u) { return u.value == value; }) > 1)
      return false;
    bool after = false;
    for (const auto& n : graph.nodes()) {
      const bool producer = n.get() == value.node;
      for (size_t i = 0; i < n->inputs.size(); ++i) {
        if (storage(n->inputs[i]) != variable) continue;
        if (after && !n->op->memory().view) return false;
        if (producer && std::ranges::none_of(n->op->memory().may_overwrite, [&](const graph::Overlap& o) {
              return o.output == value.output && o.input == int(i);
            }))
          return false;
      }
      after |= producer;
    }
    for (const graph::Output& o : graph.outputs)
      if (storage(o.value) == variable) return false;
    return true;
  };
  graph::Builder b(graph);
  const graph::Builder::Scope scope(b, "", graph::Phase::kUpdate);
  for (graph::Update& u : graph.updates) {
    if (graph::made_in_place(u.value, u.variable) || (in_variables && direct(u.value, u.variable))) continue;
    u.value = ops::assign(b, u.variable, u.value);
  }
}

}  // namespace millpond::passes
