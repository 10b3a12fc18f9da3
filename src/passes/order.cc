// The order of calls with the smallest peak: tries the order by rank, an eager one, and a greedy one that frees most
// and takes least, each also with calls put off until they are wanted, and keeps the best. Sizes are those of values;
// what the plan puts in place later only makes them smaller.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "base/assert.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Role;
using graph::Value;

namespace {

// The graph as numbers: what each node makes, reads and must follow.
struct Problem {
  std::vector<Node*> nodes;
  std::vector<std::vector<int>> after;  // nodes that must come later
  std::vector<int> waits;               // how many must come earlier
  std::vector<std::vector<int>> reads;  // buffers read, each once
  std::vector<std::vector<int>> makes;
  std::vector<int64_t> size;              // of buffers
  std::vector<int> readers;               // of buffers; one more for what leaves the graph
  std::vector<std::vector<int>> read_by;  // nodes, of buffers
};

Problem describe(const graph::Graph& graph) {
  Problem p;
  for (const auto& n : graph.nodes()) p.nodes.push_back(n.get());
  const auto number = [](const Node* n) { return size_t(n->place); };  // the graph has just been sorted
  const size_t count = p.nodes.size();
  p.after.resize(count), p.waits.resize(count), p.reads.resize(count), p.makes.resize(count);
  std::vector<std::vector<int>> buffers(count);  // of each output; -1: no memory of its own in the arena
  for (size_t i = 0; i < count; ++i) {
    const Node& n = *p.nodes[i];
    graph::MemoryFacts facts;
    if (n.role == Role::kOperator) facts = n.op->memory();
    for (size_t o = 0; o < n.types.size(); ++o) {
      int buffer = -1;
      const auto in_place = std::ranges::find(facts.in_place, int(o), &graph::Overlap::output);
      if (facts.view)
        buffer = buffers[number(n.inputs[0].node)][n.inputs[0].output];
      else if (in_place != facts.in_place.end())
        buffer = buffers[number(n.inputs[in_place->input].node)][n.inputs[in_place->input].output];
      else if (n.role == Role::kOperator || n.role == Role::kInput) {
        buffer = int(p.size.size());
        p.size.push_back(n.types[o].bytes().value);
        p.readers.push_back(0);
        p.read_by.emplace_back();
        p.makes[i].push_back(buffer);
      }
      buffers[i].push_back(buffer);
    }
    for (Value v : n.inputs) {
      const int buffer = buffers[number(v.node)][v.output];
      if (buffer >= 0 && (p.read_by[buffer].empty() || p.read_by[buffer].back() != int(i)))
        p.reads[i].push_back(buffer), p.read_by[buffer].push_back(int(i)), ++p.readers[buffer];
      p.after[number(v.node)].push_back(int(i)), ++p.waits[i];
    }
  }
  for (const auto& [reader, overwriter] : graph::overwrite_edges(graph.nodes()))
    p.after[number(reader)].push_back(overwriter->place), ++p.waits[number(overwriter)];
  const auto keep = [&](Value v) {
    if (const int buffer = buffers[number(v.node)][v.output]; buffer >= 0) ++p.readers[buffer];
  };
  for (const graph::Output& o : graph.outputs) keep(o.value);
  return p;
}

// The peak; between equals, all that is alive summed over the calls: the peak of the plan may lie elsewhere, since what
// goes in place counts twice here.
struct Cost {
  int64_t most = 0;
  double sum = 0;
  auto operator<=>(const Cost&) const = default;
};

Cost cost(const Problem& p, const std::vector<int>& order) {
  std::vector<int> left = p.readers;
  Cost c;
  int64_t live = 0;
  for (size_t i = 0; i < p.nodes.size(); ++i)  // inputs are filled before the first call
    if (p.nodes[i]->role == Role::kInput) live += p.size[p.makes[i][0]];
  for (int i : order) {
    if (p.nodes[i]->role == Role::kInput) continue;
    for (int b : p.makes[i]) live += p.size[b];
    c.most = std::max(c.most, live);
    c.sum += double(live);
    for (int b : p.makes[i])
      if (left[b] == 0) live -= p.size[b];
    for (int b : p.reads[i])
      if (--left[b] == 0) live -= p.size[b];
  }
  return c;
}

// How many readers of each buffer are still to come, and by how much a node would let the bytes alive grow if it came
// next. That changes in one way only: a buffer comes to have a single reader left, which then frees it.
class Left {
 public:
  explicit Left(const Problem& p) : p_(p), left_(p.readers), done_(p.nodes.size()) {}

  int64_t growth(int i) const {
    int64_t grows = 0;
    for (int b : p_.makes[i]) grows += left_[b] ? p_.size[b] : 0;
    for (int b : p_.reads[i]) grows -= left_[b] == 1 ? p_.size[b] : 0;
    return grows;
  }
  bool done(int i) const { return done_[i]; }
  /// The node has run; `changed(j)` for every node whose growth is less now.
  template <class F>
  void run(int i, F changed) {
    done_[i] = true;
    for (int b : p_.reads[i])
      if (--left_[b] == 1)
        for (int j : p_.read_by[b])
          if (!done_[j]) changed(j);
  }

 private:
  const Problem& p_;
  std::vector<int> left_;
  std::vector<bool> done_;
};

// Always the node that, among the ready ones, leaves the fewest bytes alive; by rank between equals.
std::vector<int> greedy(const Problem& p) {
  struct Ready {
    int64_t grows;
    int rank, turn, node;  // turn: of becoming ready
    auto operator<=>(const Ready&) const = default;
  };
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;  // with entries that are out of date
  std::vector<int> waits = p.waits, turn(p.nodes.size(), -1), order;
  Left left(p);
  int turns = 0;
  const auto enter = [&](int i) {
    if (turn[i] < 0) turn[i] = turns++;
    const bool leaf = p.nodes[i]->role != Role::kOperator;
    ready.push({leaf ? std::numeric_limits<int64_t>::min() : left.growth(i), p.nodes[i]->rank, turn[i], i});
  };
  for (size_t i = 0; i < p.nodes.size(); ++i)
    if (!waits[i]) enter(int(i));
  while (!ready.empty()) {
    const int i = ready.top().node;
    ready.pop();
    if (left.done(i)) continue;
    order.push_back(i);
    left.run(i, [&](int j) {
      if (!waits[j]) enter(j);
    });
    for (int j : p.after[i])
      if (--waits[j] == 0) enter(j);
  }
  return order;
}

// As by rank, but a node that frees at least what it takes runs as soon as it can: updates right after their gradients.
std::vector<int> eager(const Problem& p) {
  std::vector<int> waits = p.waits, order;
  Left left(p);
  const auto later = [&](int i, int j) {
    return std::pair(p.nodes[i]->rank, p.nodes[i]->id) > std::pair(p.nodes[j]->rank, p.nodes[j]->id);
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  using Turn = std::pair<int, int>;  // of becoming ready, and the node
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> freeing;
  std::vector<int> turn(p.nodes.size(), -1);  // of those that are looked at for freeing
  int turns = 0;
  for (size_t i = 0; i < p.nodes.size(); ++i)
    if (!waits[i]) ready.push(int(i));
  const auto look_at = [&](int i) {
    if (turn[i] >= 0 && left.growth(i) <= 0) freeing.push({turn[i], i});
  };
  while (order.size() < p.nodes.size()) {
    int i = -1;
    for (; i < 0 && !freeing.empty(); freeing.pop())
      if (!left.done(freeing.top().second)) i = freeing.top().second;
    for (; i < 0; ready.pop())
      if (!left.done(ready.top())) i = ready.top();
    order.push_back(i);
    left.run(i, look_at);
    for (int j : p.after[i])
      if (--waits[j] == 0) {
        ready.push(j);
        if (p.nodes[j]->role == Role::kOperator && p.nodes[j]->phase != graph::Phase::kForward)
          turn[j] = turns++, look_at(j);
      }
  }
  return order;
}

// The same order, but a call waits until just before its first reader where that saves more bytes times calls than it
// costs: its operands may have to live longer.
std::vector<int> late(const Problem& p, const std::vector<int>& order) {
  std::vector<double> place(order.size());  // between the whole numbers: before the node that has the next one
  // The last two readers of each buffer. Places only rise, so two are enough to know the last one beside any node.
  struct Last {
    int node = -1, before = -1;
  };
  std::vector<Last> last(p.size.size());
  const auto note = [&](int b, int i) {
    Last& l = last[b];
    if (l.node == i) return;
    if (l.node < 0 || place[i] > place[l.node])
      l.before = l.node, l.node = i;
    else if (l.before < 0 || place[i] > place[l.before])
      l.before = i;
  };
  for (size_t k = 0; k < order.size(); ++k) {
    place[order[k]] = double(k);
    for (int b : p.reads[order[k]]) note(b, order[k]);
  }
  for (size_t k = order.size(); k-- > 0;) {
    const int i = order[k];
    if (p.nodes[i]->role != Role::kOperator || p.after[i].empty()) continue;
    double wanted = std::numeric_limits<double>::max();
    for (int j : p.after[i]) wanted = std::min(wanted, place[j]);
    double saved = 0;
    for (int b : p.makes[i]) saved += double(p.size[b]) * (wanted - place[i]);
    for (int b : p.reads[i]) {
      const int other = last[b].node == i ? last[b].before : last[b].node;
      const double end = other < 0 ? place[i] : std::max(place[i], place[other]);
      saved -= double(p.size[b]) * std::max(0.0, wanted - end);
    }
    if (saved <= 0) continue;
    place[i] = std::nextafter(wanted, 0.0);
    for (int b : p.reads[i]) note(b, i);
  }
  std::vector<int> result = order;
  std::ranges::stable_sort(result, {}, [&](int i) { return place[i]; });
  return result;
}

}  // namespace

void order(graph::Graph& graph) {
  const Problem p = describe(graph);
  std::vector<int> best(p.nodes.size());
  for (size_t i = 0; i < best.size(); ++i) best[i] = int(i);
  Cost least = cost(p, best);
  std::vector<std::vector<int>> candidates{eager(p), greedy(p), late(p, best)};
  candidates.push_back(late(p, candidates[0]));
  candidates.push_back(late(p, candidates[1]));
  for (const std::vector<int>& candidate : candidates) {
    MP_ASSERT(candidate.size() == best.size());
    if (const Cost c = cost(p, candidate); c < least) best = candidate, least = c;
  }
  std::vector<Node*> nodes;
  for (size_t i = 0; i < best.size(); ++i)
    nodes.push_back(p.nodes[best[i]]), nodes.back()->rank = int(i) + 1;  // sort() keeps it
  graph.reorder(nodes);
}

}  // namespace millpond::passes
