#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> create_graph(const Case& c) {
  if (!c.leaking() || c.rose("torch.with_grad_fn") < 3) return {};
  for (const CountedLine& line : c.notes.lines) {
    if (line.what != "backward_create_graph") continue;
    // Gradients with a graph keep the graphs of all steps before them; a list of the user's own is told by C36.
    const bool listed = std::ranges::any_of(c.notes.containers, [](const Container& k) { return k.still && k.is_user && is_tensor(k.item_type) && !contains(k.type, "chain"); });
    Match m{.share = listed ? 0.9 * (1 - c.data_share()) : 1, .weight = listed ? 1 : 1.2};
    m.blame = line.place;
    m.evidence.push_back(format("{} was called {}, and {:.0f} more tensors with a graph are alive", at(line.place),
                                often(line.count), c.rose("torch.with_grad_fn")));
    return m;
  }
  return {};
}

}  // namespace

const Cause c37_create_graph = {
    .id = "C37",
    .title = "backward keeps its graph (create_graph or retain_graph), and parameters and gradients hold one another",
    .explanation =
        "With create_graph=True a gradient refers to the graph, and the graph to the parameter: a cycle that gc does "
        "not see.",
    .fix =
        "Set the grad of every parameter to None after each step (`optimizer.zero_grad(set_to_none=True)`; filling it with zeros keeps the graph), or take "
        "second derivatives with torch.autograd.grad; leave out retain_graph=True where backward goes through a graph once.",
    .threads = {"pytorch#4661", "pytorch#1346", "pytorch#71068"},
    .detect = create_graph};

}  // namespace millpond::verdict
