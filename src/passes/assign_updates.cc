// assign_updates: every update ends in its variable. The new value is made in the variable's own bytes where nobody
// reads the old one any more; elsewhere ops::Assign copies it there. Something must do this, so the pass always runs;
// `in_variables` says whether copies are avoided.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "ops/assign.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Role;
using graph::storage;
using graph::Value;

namespace {

struct Reader {
  const Node* node;
  int operand;
};

class Assigner {
 public:
  explicit Assigner(const graph::Graph& graph) {
    for (const graph::Output& o : graph.outputs) leaves_.insert(storage(o.value));
    for (const graph::Update& u : graph.updates) ++updates_[u.value];
    for (const auto& n : graph.nodes()) note(*n);
  }

  // May `value` be made in the variable's own bytes? Not when somebody reads the old value later, or while it is being
  // made.
  bool direct(Value value, Value variable) {
    if (value.node->role != Role::kOperator || value.node->op->memory().view ||
        !value.node->op->memory().in_place.empty() || updates_[value] > 1 || leaves_.count(variable))
      return false;
    const std::vector<graph::Overlap> may = value.node->op->memory().may_overwrite;
    return std::ranges::none_of(readers_[variable], [&](const Reader& r) {
      if (r.node != value.node) return place(*r.node) > place(*value.node) && !r.node->op->memory().view;
      return std::ranges::none_of(
          may, [&](const graph::Overlap& o) { return o.output == value.output && o.input == r.operand; });
    });
  }
  Value assign(graph::Builder& b, Value variable, Value value) {
    const Value made = ops::assign(b, variable, value);
    --updates_[value];
    late_.insert(made.node);
    note(*made.node);
    return made;
  }

 private:
  void note(const Node& n) {
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (const Value s = storage(n.inputs[i]); s.node->role == Role::kVariable) readers_[s].push_back({&n, int(i)});
  }
  int place(const Node& n) const { return late_.count(&n) ? std::numeric_limits<int>::max() : n.place; }

  std::unordered_set<Value, graph::ValueHash> leaves_;                        // the graph, as outputs
  std::unordered_map<Value, int, graph::ValueHash> updates_;                  // how many variables a value goes to
  std::unordered_map<Value, std::vector<Reader>, graph::ValueHash> readers_;  // of variables, through views too
  std::unordered_set<const Node*> late_;                                      // made here: behind all others
};

}  // namespace

void assign_updates(graph::Graph& graph, bool in_variables) {
  Assigner assigner(graph);
  graph::Builder b(graph);
  const graph::Builder::Scope scope(b, "", graph::Phase::kUpdate);
  for (graph::Update& u : graph.updates) {
    if (graph::made_in_place(u.value, u.variable) || (in_variables && assigner.direct(u.value, u.variable))) continue;
    u.value = assigner.assign(b, u.variable, u.value);
  }
}

}  // namespace millpond::passes
