// Element-wise fusion: chains of element-wise nodes over one iteration space, and sums of what they make, become one
// fused node: one pass over memory instead of one for each. Two groups join when one reads the other or both read the
// same tensor, and no path leaves the one and comes back into the other.
#include <algorithm>
#include <limits>
#include <set>
#include <span>
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

// Of the readers of one tensor, this many on either side of a node are looked at for company. A weight or a mask that
// every step of a long recurrent graph reads would otherwise be looked at by all pairs of steps.
constexpr size_t kMostReaders = 16;

// Nodes that one search for a path may look at. Groups that lie farther apart than that gain nothing from one pass over
// memory.
constexpr size_t kMostVisited = 1024;

struct Group {
  Shape space;
  std::vector<Node*> nodes;  // in topological order
  Phase phase = Phase::kForward;
  int first() const { return nodes.front()->place; }
  int last() const { return nodes.back()->place; }
};

// The earliest place that a group with nodes at or behind a place reaches back to. A tree of least values over ranges
// of places, each half as many as the next: log n for a question and for a change.
class Earliest {
 public:
  explicit Earliest(size_t places) : least_(places + 1, std::numeric_limits<int>::max()) {}
  void note(int first, int last) {
    for (size_t i = least_.size() - 1 - size_t(last); i < least_.size(); i += i & -i)
      least_[i] = std::min(least_[i], first);
  }
  int from(int place) const {
    int least = std::numeric_limits<int>::max();
    for (size_t i = least_.size() - 1 - size_t(place); i > 0; i -= i & -i) least = std::min(least, least_[i]);
    return least;
  }

 private:
  std::vector<int> least_;  // counted from the last place
};

class Fusion {
 public:
  explicit Fusion(graph::Graph& g)
      : graph_(g),
        uses_(g),
        group_(g.nodes().size(), -1),
        readers_(g.nodes().size()),
        earliest_(g.nodes().size()),
        seen_(g.nodes().size(), 0) {
    for (const auto& n : g.nodes())
      for (Value v : n->inputs)
        if (auto& list = readers_[size_t(v.node->place)]; list.empty() || list.back() != n->place)
          list.push_back(n->place);
  }

  void run() {
    for (const auto& n : graph_.nodes()) seed(*n);
    for (const auto& n : graph_.nodes()) {
      if (group_of(n.get()) < 0) continue;
      for (Value v : n->inputs) {  // with whom it reads
        if (group_of(v.node) >= 0) join(v.node, n.get());
        if (v.shape().size() > 1)  // with who reads the same tensor
          for (const graph::Uses::Use& u : near_readers(v, *n))
            if (u.node && u.node != n.get() && group_of(u.node) >= 0) join(u.node, n.get());
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
    group_of(&n) = int(groups_.size());
    groups_.push_back({space, {&n}, n.phase});
  }
  int& group_of(const Node* n) { return group_[size_t(n->place)]; }

  // Loss and its gradient may share a pass; forward and backward lie far apart in time, and joining them would keep
  // alive what backward could make when it is needed.
  static bool near(Phase a, Phase b) {
    const auto side = [](Phase p) { return p == Phase::kLoss ? Phase::kBackward : p; };
    return side(a) == side(b);
  }

  // The readers of v around n, in the order of the graph.
  std::span<const graph::Uses::Use> near_readers(Value v, const Node& n) const {
    const std::vector<graph::Uses::Use>& all = uses_.of(v);
    if (all.size() <= 2 * kMostReaders) return all;
    auto behind = all.end();  // outputs and updates stand last
    while (behind != all.begin() && !std::prev(behind)->node) --behind;
    const auto here = std::partition_point(all.begin(), behind, [&](const auto& u) { return u.node->place < n.place; });
    const auto from = here - std::min<std::ptrdiff_t>(here - all.begin(), kMostReaders);
    const auto to = here + std::min<std::ptrdiff_t>(behind - here, kMostReaders + 1);
    return {from, to};
  }

  bool reaches(const Group& from, int to) {
    // Is there a path from `from` to group `to` through somebody else? What lies behind all of `to` leads there only
    // through a group that reaches back.
    const int last = groups_[to].last();
    const auto too_late = [&](int place) { return place > last && earliest_.from(place) > last; };
    todo_.clear();
    ++search_;
    size_t visited = 0;
    const auto enter = [&](int place) {
      if (seen_[size_t(place)] == search_) return;
      seen_[size_t(place)] = search_;
      ++visited;
      todo_.push_back(place);
    };
    const int self = group_of(from.nodes[0]);
    const auto visit = [&](int place, bool first) {
      for (const int reader : readers_[size_t(place)]) {
        const int id = group_[size_t(reader)];
        if (id == self || (first && id == to)) continue;
        if (id < 0) {
          if (!too_late(reader)) enter(reader);
        } else if (!too_late(groups_[size_t(id)].first())) {
          for (const Node* m : groups_[size_t(id)].nodes) enter(m->place);
        }
      }
    };
    for (const Node* n : from.nodes) visit(n->place, true);
    while (!todo_.empty()) {
      if (visited > kMostVisited) return true;  // not known; as if there were one
      const int place = todo_.back();
      todo_.pop_back();
      if (group_[size_t(place)] == to) return true;
      visit(place, false);
    }
    return false;
  }

  void join(Node* a, Node* b) {
    const int ga = group_of(a), gb = group_of(b);
    if (ga == gb) return;
    Group &p = groups_[ga], &q = groups_[gb];
    // The same two, as large as they were when they were refused, are not looked at again.
    uint64_t& refused = refused_[uint64_t(std::min(ga, gb)) << 32 | uint64_t(std::max(ga, gb))];
    const uint64_t sizes = p.nodes.size() << 32 | q.nodes.size();
    if (refused == sizes) return;
    refused = sizes;
    if (!near(p.phase, q.phase) || p.space.size() != q.space.size() ||
        extent_in(p.space, q.space) != ops::Extent::kFull)
      return;
    if (p.nodes.size() + q.nodes.size() > kMostNodes) return;
    // a sum inside the one cannot be read by the other: the pass is not over yet
    for (Node* n : p.nodes)
      if (as_sum(*n))
        for (const graph::Uses::Use& u : uses_.of(n->output()))
          if (u.node && group_of(u.node) == gb) return;
    for (Node* n : q.nodes)
      if (as_sum(*n))
        for (const graph::Uses::Use& u : uses_.of(n->output()))
          if (u.node && group_of(u.node) == ga) return;
    std::set<std::pair<const Node*, int>> outside;
    for (const Group* g : {&p, &q})
      for (Node* n : g->nodes)
        for (Value v : n->inputs)
          if (group_of(v.node) != ga && group_of(v.node) != gb) outside.insert({v.node, v.output});
    if (outside.size() > kMostGroupInputs || reaches(p, gb) || reaches(q, ga)) return;
    for (Node* n : q.nodes) group_of(n) = ga;
    p.nodes.insert(p.nodes.end(), q.nodes.begin(), q.nodes.end());
    std::ranges::sort(p.nodes, {}, &Node::place);
    earliest_.note(p.first(), p.last());
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
    for (size_t i = 0; i < outs.size(); ++i) uses_.replace(replaced[i], outs[i], outs[0].node);
  }

  graph::Graph& graph_;
  graph::Uses uses_;
  std::vector<int> group_;                          // by place; -1: none
  std::vector<std::vector<int>> readers_;           // places, by place
  std::unordered_map<uint64_t, uint64_t> refused_;  // two groups, and how large they were
  std::vector<int> todo_;                           // of a search
  std::vector<Group> groups_;
  Earliest earliest_;
  std::vector<int> seen_;  // by place: the last search that came by
  int search_ = 0;
};

}  // namespace

void fuse(graph::Graph& graph) { Fusion(graph).run(); }

}  // namespace millpond::passes
