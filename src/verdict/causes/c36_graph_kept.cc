#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/torch_hook.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

const Container* keeper(const Case& c) {
  const Container* best = nullptr;
  for (const Container& k : c.notes.containers) {
    if (!k.still || k.bounded || filled_by_hook(c, k)) continue;
    if (keeps_graph(k)) return &k;
    if (is_tensor(k.item_type) && (!best || (k.is_user && !best->is_user))) best = &k;
  }
  return best;
}

std::optional<Match> graph_kept(const Case& c) {
  const double graphs = c.rose("torch.with_grad_fn");
  const Container* k = keeper(c);
  if (!c.leaking() || !k || (graphs < 3 && !keeps_graph(*k))) return {};
  Match m{.share = 1, .weight = 1.1};
  m.blame = k->place;
  m.holder = tell(*k);
  m.evidence.push_back(
      format("{} gains {} {}; each keeps the graph that made it", named(*k), counted(k->per_period, "tensor"), every(c)));
  if (graphs >= 3)
    m.evidence.push_back(
        format("{:.0f} more tensors with a graph behind them are alive than when warm-up was over", graphs));
  if (k->statement) take(m, keep_less(c, *k));
  return m;
}

}  // namespace

const Cause c36_graph_kept = {
    .id = "C36",
    .title = "Tensors are kept together with the graph that made them",
    .explanation = "A loss that is stored or summed up keeps every activation of its step alive through grad_fn.",
    .fix =
        "Keep a number (`.item()`, of a tensor with one element), or keep the tensor without its graph (`.detach()`); evaluate under "
        "`with torch.no_grad():`.",
    .threads = {"pytorch#1840", "pytorch#64586", "pytorch#6017"},
    .detect = graph_kept};

}  // namespace millpond::verdict
