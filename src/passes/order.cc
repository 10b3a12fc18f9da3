// The order of calls with the smallest peak: tries the order by rank, an eager one, and a greedy one that frees most
// and takes least, each also with calls put off until they are wanted, and keeps the best. Sizes are those of values;
// what the plan puts in place later only makes them smaller.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>

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
  std::vector<int64_t> size;  // of buffers
  std::vector<int> readers;   // of buffers; one more for what leaves the graph
};

Problem describe(const graph::Graph& graph) {
  Problem p;
  std::unordered_map<const Node*, int> number;
  for (const auto& n : graph.nodes()) number[n.get()] = int(p.nodes.size()), p.nodes.push_back(n.get());
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
        buffer = buffers[number[n.inputs[0].node]][n.inputs[0].output];
      else if (in_place != facts.in_place.end())
        buffer = buffers[number[n.inputs[in_place->input].node]][n.inputs[in_place->input].output];
      else if (n.role == Role::kOperator || n.role == Role::kInput) {
        buffer = int(p.size.size());
        p.size.push_back(n.types[o].bytes().value);
        p.readers.push_back(0);
        p.makes[i].push_back(buffer);
      }
      buffers[i].push_back(buffer);
    }
    for (Value v : n.inputs) {
      const int buffer = buffers[number[v.node]][v.output];
      if (buffer >= 0 && !std::ranges::count(p.reads[i], buffer)) p.reads[i].push_back(buffer), ++p.readers[buffer];
      p.after[number[v.node]].push_back(int(i)), ++p.waits[i];
    }
  }
  for (const auto& [reader, overwriter] : graph::overwrite_edges(graph.nodes()))
    p.after[number[reader]].push_back(number[overwriter]), ++p.waits[number[overwriter]];
  const auto keep = [&](Value v) {
    if (const int buffer = buffers[number[v.node]][v.output]; buffer >= 0) ++p.readers[buffer];
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

// Always the node that, among the ready ones, leaves the fewest bytes alive; by rank between equals.
std::vector<int> greedy(const Problem& p) {
  std::vector<int> waits = p.waits, left = p.readers, ready, order;
  for (size_t i = 0; i < p.nodes.size(); ++i)
    if (!waits[i]) ready.push_back(int(i));
  while (!ready.empty()) {
    int64_t best = std::numeric_limits<int64_t>::max();
    size_t pick = 0;
    for (size_t k = 0; k < ready.size(); ++k) {
      const int i = ready[k];
      int64_t grows = 0;
      if (p.nodes[i]->role == Role::kOperator) {
        for (int b : p.makes[i]) grows += left[b] ? p.size[b] : 0;
        for (int b : p.reads[i]) grows -= left[b] == 1 ? p.size[b] : 0;
      } else {
        grows = std::numeric_limits<int64_t>::min();
      }
      if (grows < best || (grows == best && p.nodes[i]->rank < p.nodes[ready[pick]]->rank)) best = grows, pick = k;
    }
    const int i = ready[pick];
    ready.erase(ready.begin() + int64_t(pick));
    order.push_back(i);
    for (int b : p.reads[i]) --left[b];
    for (int j : p.after[i])
      if (--waits[j] == 0) ready.push_back(j);
  }
  return order;
}

// As by rank, but a node that frees at least what it takes runs as soon as it can: updates right after their gradients.
std::vector<int> eager(const Problem& p) {
  std::vector<int> waits = p.waits, left = p.readers, order;
  const auto later = [&](int i, int j) {
    return std::pair(p.nodes[i]->rank, p.nodes[i]->id) > std::pair(p.nodes[j]->rank, p.nodes[j]->id);
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  std::vector<int> parked;  // ready; looked at for freeing
  for (size_t i = 0; i < p.nodes.size(); ++i)
    if (!waits[i]) ready.push(int(i));
  std::vector<bool> done(p.nodes.size());
  const auto frees = [&](int i) {
    int64_t grows = 0;
    for (int b : p.makes[i]) grows += left[b] ? p.size[b] : 0;
    for (int b : p.reads[i]) grows -= left[b] == 1 ? p.size[b] : 0;
    return grows <= 0;
  };
  while (order.size() < p.nodes.size()) {
    int i = -1;
    for (size_t k = 0; k < parked.size() && i < 0; ++k)
      if (!done[parked[k]] && frees(parked[k])) i = parked[k];
    while (i < 0) {
      if (!done[ready.top()]) i = ready.top();
      ready.pop();
    }
    done[i] = true;
    std::erase(parked, i);
    order.push_back(i);
    for (int b : p.reads[i]) --left[b];
    for (int j : p.after[i])
      if (--waits[j] == 0) {
        ready.push(j);
        if (p.nodes[j]->role == Role::kOperator && p.nodes[j]->phase != graph::Phase::kForward) parked.push_back(j);
      }
  }
  return order;
}

// The same order, but a call waits until just before its first reader where that saves more bytes times calls than it
// costs: its operands may have to live longer.
std::vector<int> late(const Problem& p, const std::vector<int>& order) {
  std::vector<double> place(order.size());  // between the whole numbers: before the node that has the next one
  std::vector<std::vector<int>> readers(p.size.size());
  for (size_t k = 0; k < order.size(); ++k) {
    place[order[k]] = double(k);
    for (int b : p.reads[order[k]]) readers[b].push_back(order[k]);
  }
  for (size_t k = order.size(); k-- > 0;) {
    const int i = order[k];
    if (p.nodes[i]->role != Role::kOperator || p.after[i].empty()) continue;
    double wanted = std::numeric_limits<double>::max();
    for (int j : p.after[i]) wanted = std::min(wanted, place[j]);
    double saved = 0;
    for (int b : p.makes[i]) saved += double(p.size[b]) * (wanted - place[i]);
    for (int b : p.reads[i]) {
      double end = place[i];
      for (int j : readers[b])
        if (j != i) end = std::max(end, place[j]);
      saved -= double(p.size[b]) * std::max(0.0, wanted - end);
    }
    if (saved > 0) place[i] = std::nextafter(wanted, 0.0);
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
