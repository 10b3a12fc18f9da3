#include "graph/graph.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_set>

#include "base/assert.h"
#include "base/format.h"
#include "graph/operator.h"

namespace millpond::graph {

std::string to_string(const TensorType& type) { return format("{}{}", type.dtype, type.shape); }

std::string_view to_string(Phase phase) {
  static constexpr const char* kNames[] = {"forward", "loss", "backward", "update"};
  return kNames[int(phase)];
}

const TensorType& Value::type() const { return node->types[output]; }

Node* Graph::add(Node node) {
  node.id = ++next_id_;
  if (node.rank == 0) node.rank = node.id;
  node.place = 0;
  Node* const made = nodes_.emplace_back(std::make_unique<Node>(std::move(node))).get();
  if (made->role == Role::kVariable) variables_.emplace(made->variable, made);
  return made;
}

Node* Graph::variable(const void* identity) const {
  const auto found = variables_.find(identity);
  return found == variables_.end() ? nullptr : found->second;
}

Graph Graph::clone(std::unordered_map<const Node*, Node*>* moved) const {
  Graph copy;
  std::unordered_map<const Node*, Node*> to;
  for (const auto& n : nodes_) to[n.get()] = copy.nodes_.emplace_back(std::make_unique<Node>(*n)).get();
  const auto move = [&](Value v) { return v ? Value{to.at(v.node), v.output} : v; };
  for (const auto& n : copy.nodes_)
    for (Value& v : n->inputs) v = move(v);
  for (const Output& o : outputs) copy.outputs.push_back({o.name, move(o.value)});
  for (const Update& u : updates) copy.updates.push_back({move(u.variable), move(u.value)});
  for (const auto& [identity, node] : variables_) copy.variables_[identity] = to.at(node);
  copy.next_id_ = next_id_;
  if (moved) *moved = std::move(to);
  return copy;
}

std::vector<Node*> Graph::inputs() const {
  std::vector<Node*> found;
  for (const auto& n : nodes_)
    if (n->role == Role::kInput) found.push_back(n.get());
  std::ranges::sort(found, {}, &Node::id);
  return found;
}
std::vector<Node*> Graph::variables() const {
  std::vector<Node*> found;
  for (const auto& n : nodes_)
    if (n->role == Role::kVariable) found.push_back(n.get());
  std::ranges::sort(found, {}, &Node::id);
  return found;
}

void Graph::sort() {
  constexpr int kDead = -1;
  std::vector<Node*> todo;
  for (const auto& n : nodes_) n->place = kDead;
  const auto reach = [&](Value v) {
    if (v && v.node->place == kDead) v.node->place = 0, todo.push_back(v.node);
  };
  for (const auto& n : nodes_)
    if (n->role == Role::kInput) reach({n.get(), 0});
  for (const Output& o : outputs) reach(o.value);
  for (const Update& u : updates) reach(u.value), reach(u.variable);
  while (!todo.empty()) {
    Node* n = todo.back();
    todo.pop_back();
    for (Value v : n->inputs) reach(v);
  }
  for (const auto& n : nodes_)
    if (n->place == kDead && n->role == Role::kVariable) variables_.erase(n->variable);
  std::erase_if(nodes_, [&](const auto& n) { return n->place == kDead; });

  // Edges: producer before reader, and every reader of a value before the node that overwrites it in place.
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->place = int(i);
  std::vector<std::vector<int>> after(nodes_.size());
  std::vector<int> waits(nodes_.size(), 0);
  const auto edge = [&](const Node* a, const Node* b) {
    after[size_t(a->place)].push_back(b->place), ++waits[size_t(b->place)];
  };
  for (const auto& n : nodes_)
    for (Value v : n->inputs) edge(v.node, n.get());
  for (const auto& [reader, overwriter] : overwrite_edges(nodes_)) edge(reader, overwriter);
  const auto later = [&](int i, int j) {
    return std::pair(nodes_[i]->rank, nodes_[i]->id) > std::pair(nodes_[j]->rank, nodes_[j]->id);
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (!waits[i]) ready.push(int(i));
  std::vector<int> order;
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    for (int j : after[i])
      if (--waits[j] == 0) ready.push(j);
    order.push_back(i);
  }
  MP_ASSERT(order.size() == after.size());  // otherwise: a cycle
  std::vector<std::unique_ptr<Node>> sorted;
  sorted.reserve(order.size());
  for (int i : order) sorted.push_back(std::move(nodes_[i])), sorted.back()->place = int(sorted.size()) - 1;
  nodes_ = std::move(sorted);
}

void Graph::reorder(const std::vector<Node*>& order) {
  MP_ASSERT(order.size() == nodes_.size());
  std::unordered_map<Node*, std::unique_ptr<Node>> held;
  for (auto& n : nodes_) {
    Node* p = n.get();
    held[p] = std::move(n);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    nodes_[i] = std::move(held.at(order[i]));
    MP_ASSERT(nodes_[i] != nullptr);
    nodes_[i]->place = int(i);
  }
}

bool made_in_place(Value value, Value variable) {
  value = storage(value);
  if (value.node->role != Role::kOperator) return value == variable;
  for (const Overlap& o : value.node->op->memory().in_place)
    if (o.output == value.output && storage(value.node->inputs[size_t(o.input)]) == variable) return true;
  return false;
}

Value storage(Value v) {
  while (v.node->role == Role::kOperator && v.node->op->memory().view) v = v.node->inputs[0];
  return v;
}

std::vector<std::pair<Node*, Node*>> overwrite_edges(const std::vector<std::unique_ptr<Node>>& nodes) {
  std::unordered_map<Value, std::vector<Node*>, ValueHash> overwriters;
  for (const auto& n : nodes)
    if (n->role == Role::kOperator)
      for (const Overlap& o : n->op->memory().in_place) {
        const Value v = storage(n->inputs[o.input]);
        overwriters[v].push_back(n.get());
      }
  std::vector<std::pair<Node*, Node*>> edges;
  if (overwriters.empty()) return edges;
  for (const auto& n : nodes) {
    if (n->role != Role::kOperator || n->op->memory().view) continue;
    for (Value v : n->inputs) {
      const Value s = storage(v);
      if (const auto it = overwriters.find(s); it != overwriters.end())
        for (Node* w : it->second)
          if (w != n.get()) edges.emplace_back(n.get(), w);
    }
  }
  return edges;
}

Uses::Uses(Graph& graph) : graph_(graph) {
  uses_.reserve(graph.nodes().size());
  follow();
  for (size_t i = 0; i < graph.outputs.size(); ++i) uses_[graph.outputs[i].value].push_back({nullptr, int(i)});
  for (size_t i = 0; i < graph.updates.size(); ++i) uses_[graph.updates[i].value].push_back({nullptr, ~int(i)});
}
void Uses::follow() {
  for (; seen_ < graph_.nodes().size(); ++seen_) {
    Node* n = graph_.nodes()[seen_].get();
    for (size_t i = 0; i < n->inputs.size(); ++i) uses_[n->inputs[i]].push_back({n, int(i)});
  }
}
const std::vector<Uses::Use>& Uses::of(Value v) const {
  static const std::vector<Use> kNone;
  const_cast<Uses*>(this)->follow();
  const auto it = uses_.find(v);
  return it == uses_.end() ? kNone : it->second;
}
Node* Uses::only_reader(Value v) const {
  Node* reader = nullptr;
  for (const Use& u : of(v)) {
    if (!u.node || (reader && reader != u.node)) return nullptr;
    reader = u.node;
  }
  return reader;
}
void Uses::replace(Value from, Value to, const Node* except) {
  if (from == to) return;
  follow();
  std::vector<Use> old = std::move(uses_[from]), stay;
  std::vector<Use>& moved = uses_[to];
  for (const Use& u : old) {
    if (u.node && u.node == except) {
      stay.push_back(u);
      continue;
    }
    (u.node           ? u.node->inputs[size_t(u.operand)]
     : u.operand >= 0 ? graph_.outputs[size_t(u.operand)].value
                      : graph_.updates[size_t(~u.operand)].value) = to;
    moved.push_back(u);
  }
  uses_[from] = std::move(stay);
}
void Uses::read_instead(Node* node, int operand, Value to) {
  follow();
  Value& v = node->inputs[size_t(operand)];
  if (v == to) return;
  std::erase_if(uses_[v], [&](const Use& u) { return u.node == node && u.operand == operand; });
  v = to;
  uses_[to].push_back({node, operand});
}

std::string to_string(const Node& node) {
  std::string types, inputs;
  for (const TensorType& t : node.types) types += (types.empty() ? "" : ", ") + to_string(t);
  for (Value v : node.inputs) {
    inputs += inputs.empty() ? "" : ", ";
    inputs += v.output ? format("%{}.{}", v.node->id, v.output) : format("%{}", v.node->id);
  }
  switch (node.role) {
    case Role::kInput:
      return format("%{} input {} {}", node.id, node.name, types);
    case Role::kVariable:
      return format("%{} variable {} {}", node.id, node.name, types);
    case Role::kConstant:
      return node.constant.size() == 1 ? format("%{} constant {} = {}", node.id, types, node.constant.at(0))
                                       : format("%{} constant {} {}", node.id, node.name, types);
    case Role::kOperator:
      break;
  }
  const std::string attributes = node.op->attributes();
  return format("%{} {}/{} {} = {}{}({})", node.id, to_string(node.phase), node.layer, types, node.op->name(),
                attributes.empty() ? "" : "[" + attributes + "]", inputs);
}

std::string to_string(const Graph& graph) {
  std::string s;
  for (const auto& n : graph.nodes()) {
    s += to_string(*n) + "\n";
    if (n->role != Role::kOperator) continue;
    for (const Graph* body : n->op->bodies()) {  // indented
      const std::string inner = to_string(*body);
      for (size_t at = 0, end; at < inner.size(); at = end + 1) {
        end = inner.find('\n', at);
        s += "    " + inner.substr(at, end - at) + "\n";
      }
    }
  }
  const auto ref = [](Value v) {
    return v.output ? format("%{}.{}", v.node->id, v.output) : format("%{}", v.node->id);
  };
  for (const Output& o : graph.outputs) s += format("output {} = {}\n", o.name, ref(o.value));
  for (const Update& u : graph.updates) s += format("update {} = {}\n", u.variable.node->name, ref(u.value));
  return s;
}

std::vector<std::string> violations(const Graph& graph) {
  std::vector<std::string> found;
  std::unordered_set<const Node*> seen;
  const auto known = [&](Value v, const std::string& who) {
    if (!v)
      found.push_back(format("{} reads nothing", who));
    else if (!seen.count(v.node))
      found.push_back(format("{} reads %{}, which comes later or is not in the graph", who, v.node->id));
    else if (v.output < 0 || v.output >= int(v.node->types.size()))
      found.push_back(
          format("{} reads output {} of %{}, which has {}", who, v.output, v.node->id, v.node->types.size()));
  };
  for (const auto& n : graph.nodes()) {
    const std::string who = format("%{}", n->id);
    for (Value v : n->inputs) known(v, who);
    if (!found.empty()) return found;
    seen.insert(n.get());
    if (n->role != Role::kOperator) {
      if (n->types.size() != 1) found.push_back(who + " is a leaf without exactly one type");
      continue;
    }
    std::vector<TensorType> in;
    for (Value v : n->inputs) in.push_back(v.type());
    try {
      if (n->op->infer(in) != n->types)
        found.push_back(format("{} no longer infers its types: {}", who, to_string(*n)));
    } catch (const Error& e) {
      found.push_back(format("{} no longer infers: {}", who, e.what()));
    }
  }
  for (const Output& o : graph.outputs) known(o.value, "output " + o.name);
  for (const Update& u : graph.updates) {
    known(u.value, "an update");
    if (!u.variable || u.variable.node->role != Role::kVariable)
      found.push_back("an update of something that is no variable");
    else if (u.value && u.value.type() != u.variable.type())
      found.push_back(format("the update of {} has type {}", u.variable.node->name, to_string(u.value.type())));
  }
  return found;
}

}  // namespace millpond::graph
