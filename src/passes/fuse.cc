// Element-wise fusion: chains of element-wise nodes over one iteration space, and sums of what they make, become one
// fused node: one pass over memory instead of one for each. Two groups join when one reads the other or both read the
// same tensor, and no path leaves the one and comes back into the other.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "ops/fused.h"
#include "ops/reduce.h"
#include "passes/chain.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Phase;
using graph::Value;

namespace {

constexpr size_t kMostNodes = 32, kMostGroupInputs = 12;

struct Sum {
  ops::Collect collect;
  double scale;
};

// How a reduction ends a chain over the shape of its operand.
std::optional<Sum> as_sum(const Node& n) {
  const auto* op = as<ops::Reduce>(&n);
  if (!op || op->kind == ops::Reduce::Kind::kMax) return {};
  if (n.types[0].dtype != DType::kFloat32 && n.types[0].dtype != DType::kFloat64) return {};
  const Shape& x = n.inputs[0].shape();
  const int rank = x.rank(), count = int(op->axes.size());
  if (rank == 0) return {};
  int64_t reduced = 1;
  for (int a : op->axes) reduced *= x[a];
  const double scale = op->kind == ops::Reduce::Kind::kMean ? 1.0 / double(reduced) : 1.0;
  if (count == rank || n.types[0].shape.size() == 1) return Sum{ops::Collect::kSumAll, scale};
  if (count == 1 && op->axes[0] == rank - 1) return Sum{ops::Collect::kSumCols, scale};
  if (count == rank - 1 && op->axes.back() == rank - 2) return Sum{ops::Collect::kSumRows, scale};
  return {};
}

struct Group {
  Shape space;
  std::vector<Node*> nodes;  // in topological order
  Phase phase = Phase::kForward;
};

class Fusion {
 public:
  explicit Fusion(graph::Graph& g) : graph_(g), uses_(g) {
    for (size_t i = 0; i < g.nodes().size(); ++i) position_[g.nodes()[i].get()] = int(i);
  }

  void run() {
    for (const auto& n : graph_.nodes()) seed(*n);
    for (const auto& n : graph_.nodes()) {
      if (!group_.count(n.get())) continue;
      for (Value v : n->inputs) {  // with whom it reads
        if (group_.count(v.node)) join(v.node, n.get());
        if (v.shape().size() > 1)  // with who reads the same tensor
          for (const graph::Uses::Use& u : uses_.of(v))
            if (u.node && u.node != n.get() && group_.count(u.node)) join(u.node, n.get());
      }
    }
    for (auto& g : groups_)
      if (g.nodes.size() > 1) emit(g);
  }

 private:
  void seed(Node& n) {
    Shape space;
    if (as_sum(n)) {
      space = n.inputs[0].shape();
    } else if (n.role == graph::Role::kOperator && !n.types.empty() && fits_chain(n, n.types[0].shape)) {
      space = n.types[0].shape;
    } else {
      return;
    }
    group_[&n] = int(groups_.size());
    groups_.push_back({space, {&n}, n.phase});
  }

  // Loss and its gradient may share a pass; forward and backward lie far apart in time, and joining them would keep
  // alive what backward could make when it is needed.
  static bool near(Phase a, Phase b) {
    const auto side = [](Phase p) { return p == Phase::kLoss ? Phase::kBackward : p; };
    return side(a) == side(b);
  }

  bool reaches(const Group& from, int to) {
    // Is there a path from `from` to group `to` through somebody else?
    int last = 0;
    for (Node* n : groups_[to].nodes) last = std::max(last, position_[n]);
    std::vector<const Node*> todo;
    std::set<const Node*> seen;
    const int self = group_[from.nodes[0]];
    const auto visit = [&](const Node* n, bool first) {
      for (size_t o = 0; o < n->types.size(); ++o)
        for (const graph::Uses::Use& u : uses_.of(n->output(int(o)))) {
          if (!u.node) continue;
          const auto g = group_.find(u.node);
          const int id = g == group_.end() ? -1 : g->second;
          if (id == self || (first && id == to)) continue;
          if (id < 0) {
            if (position_[u.node] <= last && seen.insert(u.node).second) todo.push_back(u.node);
          } else {
            for (const Node* m : groups_[id].nodes)
              if (seen.insert(m).second) todo.push_back(m);
          }
        }
    };
    for (const Node* n : from.nodes) visit(n, true);
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (const auto g = group_.find(n); g != group_.end() && g->second == to) return true;
      visit(n, false);
    }
    return false;
  }

  void join(Node* a, Node* b) {
    const int ga = group_[a], gb = group_[b];
    if (ga == gb) return;
    Group &p = groups_[ga], &q = groups_[gb];
    if (!near(p.phase, q.phase) || p.space.size() != q.space.size() ||
        extent_in(p.space, q.space) != ops::Extent::kFull)
      return;
    if (p.nodes.size() + q.nodes.size() > kMostNodes) return;
    // a sum inside the one cannot be read by the other: the pass is not over yet
    for (Node* n : p.nodes)
      if (as_sum(*n))
        for (const graph::Uses::Use& u : uses_.of(n->output()))
          if (u.node && group_.count(u.node) && group_[u.node] == gb) return;
    for (Node* n : q.nodes)
      if (as_sum(*n))
        for (const graph::Uses::Use& u : uses_.of(n->output()))
          if (u.node && group_.count(u.node) && group_[u.node] == ga) return;
    std::set<std::pair<const Node*, int>> outside;
    for (const Group* g : {&p, &q})
      for (Node* n : g->nodes)
        for (Value v : n->inputs)
          if (!group_.count(v.node) || (group_[v.node] != ga && group_[v.node] != gb))
            outside.insert({v.node, v.output});
    if (outside.size() > kMostGroupInputs || reaches(p, gb) || reaches(q, ga)) return;
    for (Node* n : q.nodes) group_[n] = ga;
    p.nodes.insert(p.nodes.end(), q.nodes.begin(), q.nodes.end());
    std::ranges::sort(p.nodes, [&](Node* x, Node* y) { return position_[x] < position_[y]; });
    q.nodes.clear();
  }

  void emit(Group& g) {
    Chain chain(g.space);
    const std::set<const Node*> inside(g.nodes.begin(), g.nodes.end());
    std::vector<ops::Result> results;
    std::vector<Value> replaced;
    std::vector<graph::TensorType> types;
    for (Node* n : g.nodes) {
      const auto sum = as_sum(*n);
      if (sum) {
        results.push_back({chain.operand(n->inputs[0]), sum->collect, sum->scale});
        replaced.push_back(n->output());
        types.push_back(n->types[0]);
        continue;
      }
      chain.absorb(*n);
      if (!std::ranges::any_of(uses_.of(n->output()),
                               [&](const graph::Uses::Use& u) { return !u.node || !inside.count(u.node); }))
        continue;
      results.push_back({chain.reg(n->output()), ops::Collect::kStore, 1});
      replaced.push_back(n->output());
      types.push_back(n->types[0]);
    }
    int64_t cols = g.space.rank() ? g.space.back() : 1, rows = cols ? g.space.size() / cols : 0;
    ops::Expression e = chain.finish(std::move(results));
    // Where no operand and no result knows rows from columns, it is one long row.
    const bool flat =
        std::ranges::all_of(e.inputs,
                            [&](ops::Extent x) { return x == ops::Extent::kFull || x == ops::Extent::kScalar; }) &&
        std::ranges::all_of(e.results, [](const ops::Result& r) {
          return r.collect == ops::Collect::kStore || r.collect == ops::Collect::kSumAll;
        });
    if (flat) cols *= rows, rows = 1;
    graph::Builder b(graph_);
    const graph::Builder::Scope scope(b, *g.nodes.back());
    const std::vector<Value> outs =
        b.add_all(std::make_shared<ops::Fused>(std::move(e), rows, cols, types), chain.operands());
    for (size_t i = 0; i < outs.size(); ++i) graph_.replace(replaced[i], outs[i], outs[0].node);
  }

  graph::Graph& graph_;
  const graph::Uses uses_;
  std::unordered_map<const Node*, int> position_;
  std::unordered_map<const Node*, int> group_;
  std::vector<Group> groups_;
};

}  // namespace

void fuse(graph::Graph& graph) { Fusion(graph).run(); }

}  // namespace millpond::passes
