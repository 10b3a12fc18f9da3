// Cheap things are made twice rather than kept: where backward reads element-wise results of forward, it makes them anew from what is
// kept in any case (or from fewer bytes than they take). A gelu keeps one tensor instead of six.
//
//    forward   z ── add b ── square ── … ── y        cluster: element-wise nodes that hang together
//              │       ╲       ╲                      read by backward: several of them
//              kept     ╲ (kept) ╲ (kept)             roots: what the cluster reads from outside (z; b is a variable and costs nothing)
//    backward  z ── add b ── square ── … ── dz        now: only roots are kept, the chain runs again inside backward's fused pass
//
// And nothing is kept in two orders: where backward reads both a value and its transpose, only the transpose is kept and turned back.
// (Attention's result is wanted by heads for its own gradient, and by tokens for that of the projection behind it.)
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ops/transpose.h"
#include "passes/chain.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Phase;
using graph::Value;

namespace {

using Key = std::pair<const Node*, int>;
Key key(Value v) { return {v.node, v.output}; }

bool forward(const Node& n) { return n.role == graph::Role::kOperator && n.phase == Phase::kForward; }
bool cheap(const Node& n) { return forward(n) && !n.types.empty() && fits_chain(n, n.types[0].shape); }
bool costs(Value v) { return v.node->role == graph::Role::kOperator; }

// Kept whatever we do: read in backward by something that is not element-wise, looked at from outside, or made by one
// of those.
bool kept(const graph::Uses& uses, Value v) {
  for (const graph::Uses::Use& u : uses.of(v)) {
    if (!u.node) return true;
    if (u.node->phase == Phase::kForward) {
      // a view in forward carries its readers with it
      if (u.node->op->memory().view && kept(uses, u.node->output())) return true;
    } else if (!fits_chain(*u.node, u.node->types[0].shape)) {
      return true;
    }
  }
  return false;
}
bool later(const graph::Uses::Use& u) { return u.node && u.node->phase != Phase::kForward; }
bool read_later(const graph::Uses& uses, Value v) { return std::ranges::any_of(uses.of(v), later); }

void turn_back(graph::Graph& graph) {
  graph::Builder b(graph);
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node* n = graph.nodes()[i].get();
    const auto* turn = as<ops::Transpose>(n);
    if (!turn || !forward(*n) || !forward(*n->inputs[0].node) || n->inputs[0].node->op->memory().view) continue;
    const graph::Uses uses(graph);
    const Value v = n->inputs[0];
    if (!read_later(uses, v) || !kept(uses, n->output())) continue;
    const bool by_others = std::ranges::any_of(uses.of(v), [&](const graph::Uses::Use& u) {
      return !u.node || (u.node != n && !later(u) && u.node->op->memory().view);
    });
    if (by_others) continue;  // kept in this order in any case
    std::vector<int> back(turn->order.size());
    for (size_t k = 0; k < back.size(); ++k) back[size_t(turn->order[k])] = int(k);
    Node like = *n;
    like.phase = Phase::kBackward;
    like.rank = 0;
    for (const graph::Uses::Use& u : uses.of(v))
      if (later(u)) like.rank = like.rank ? std::min(like.rank, u.node->rank) : u.node->rank;
    const graph::Builder::Scope scope(b, like);
    const Value again = ops::transpose(b, n->output(), back);
    for (const graph::Uses::Use& u : uses.of(v))
      if (later(u)) u.node->inputs[u.operand] = again;
  }
}

class Recompute {
 public:
  explicit Recompute(graph::Graph& g) : graph_(g), uses_(g) {}

  void run() {
    for (const auto& n : graph_.nodes())
      if (cheap(*n)) cluster_[n.get()] = n.get();
    for (const auto& n : graph_.nodes())
      if (cluster_.count(n.get()))
        for (Value v : n->inputs)
          if (cluster_.count(v.node)) cluster_[find(v.node)] = find(n.get());
    std::map<const Node*, std::vector<Node*>>
        members;  // in topological order; keyed by the last member's id for a fixed order
    std::vector<const Node*> heads;
    for (const auto& n : graph_.nodes())
      if (cluster_.count(n.get())) {
        auto& list = members[find(n.get())];
        if (list.empty()) heads.push_back(find(n.get()));
        list.push_back(n.get());
      }
    for (const Node* head : heads) consider(members[head]);
  }

 private:
  Node* find(const Node* n) {
    Node* r = cluster_.at(n);
    return r == n ? r : cluster_[n] = find(r);
  }

  void consider(const std::vector<Node*>& members) {
    std::vector<Value> wanted;  // by backward, and not kept otherwise
    for (Node* n : members)
      if (const Value v = n->output(); read_later(uses_, v) && !kept(uses_, v)) wanted.push_back(v);
    if (wanted.empty()) return;
    // What would have to be run again, and from where.
    std::set<Key> again, roots;
    std::vector<Value> todo = wanted;
    for (Value v : wanted) again.insert(key(v));
    while (!todo.empty()) {
      const Value v = todo.back();
      todo.pop_back();
      for (Value x : v.node->inputs) {
        if (!costs(x)) continue;
        if (cluster_.count(x.node) && !kept(uses_, x)) {
          if (again.insert(key(x)).second) todo.push_back(x);
        } else {
          roots.insert(key(x));
        }
      }
    }
    const auto size = [](Key k) { return k.first->types[k.second].bytes().value; };
    int64_t keep = 0, root = 0;
    for (Value v : wanted) keep += size(key(v));
    for (Key k : roots) {
      const Value v{const_cast<Node*>(k.first), k.second};
      if (!kept(uses_, v) && !read_later(uses_, v)) root += size(k);
    }
    if (root >= keep) return;

    graph::Builder b(graph_);
    std::map<Key, Value> made;
    for (Node* n : members) {
      if (!again.count({n, 0})) continue;
      std::vector<Value> inputs;
      for (Value x : n->inputs) inputs.push_back(made.count(key(x)) ? made[key(x)] : x);
      // its place is that of the first reader in backward
      int rank = 0;
      for (Value v : wanted)
        for (const graph::Uses::Use& u : uses_.of(v))
          if (u.node && u.node->phase != Phase::kForward) rank = rank ? std::min(rank, u.node->rank) : u.node->rank;
      Node like = *n;
      like.phase = Phase::kBackward;
      like.rank = rank;
      const graph::Builder::Scope scope(b, like);
      made[{n, 0}] = b.add(n->op, inputs);
    }
    for (Value v : wanted)
      for (const graph::Uses::Use& u : uses_.of(v))
        if (u.node && u.node->phase != Phase::kForward) u.node->inputs[u.operand] = made[key(v)];
  }

  graph::Graph& graph_;
  const graph::Uses uses_;
  std::unordered_map<const Node*, Node*> cluster_;
};

}  // namespace

void recompute(graph::Graph& graph) {
  turn_back(graph);
  Recompute(graph).run();
}

}  // namespace millpond::passes
