// What a container, a tensor, an exception, a figure or a queue keeps of every round.
#include <algorithm>

#include "base/format.h"
#include "verdict/case.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

/// How often something is added, and how large it is. Of a dict of lists that grow the keys do not tell; the blocks do
/// that its line allocated, where they are so large that each is recorded. Of a buffer its bytes do not tell either,
/// but what all its rises are multiples of does, unless pieces of many sizes are added.
void count_additions(const Case& c, const Container& k, Match& m) {
  if (k.is_buffer()) {
    double each = k.step;
    // How often its line ran while it gained so much was counted, where it was.
    for (const Holder& h : c.notes.holders())
      if (is_same(k, h) && !h.puts.empty() && h.puts.front().by == "counted" && h.puts.front().gained > 0)
        each = h.puts.front().gained / std::max(1.0, h.puts.front().seen);
    if (each < kTable.piece) return;
    m.additions = k.per_period / each;
    m.added = k.length / each;
    m.each = each;
    return;
  }
  m.additions = k.per_period;
  m.added = k.length;
  m.each = k.bytes_per_period / k.per_period;
  if (!is_container(k.item_type)) return;
  for (const SiteGroup& s : c.sites.groups)
    if (s.user && same_line(s.place, k.place) && s.block() >= kTable.recorded &&
        s.blocks > kTable.too_much * k.length && s.slope.value > 0) {
      m.additions = s.slope.value / s.block();
      m.added = s.blocks;
      m.each = s.block();
    }
}

/// Which cause it is, by the kind of thing that a container keeps.
std::string_view kept_cause(const Case& c, const Container& k) {
  if (k.hook) return "C38";
  if (keeps_graph(k) || (is_tensor(k.item_type) && c.rose("torch.with_grad_fn") >= kTable.repeats)) return "C36";
  return k.items && (k.items->traceback || k.items->family == "exception") ? "C40" : "C14";
}

/// A container that keeps what is added to it, with what would make it keep less.
Match kept_match(const Case& c, const Container& k) {
  Match m;
  m.blame = k.place;
  // The source of a program read from standard input is gone: the line that allocates is all that is known.
  if (const std::optional<Place> grows = c.growing_place(); k.place.line == 0 && grows && grows->file == "<stdin>")
    m.blame = grows;
  m.holder = tell(k);
  m.chain = k.chain;
  m.title = format("{} keeps every {} added to it", named(k), k.item_type.empty() ? "item" : k.item_type);
  m.title[0] = char(std::toupper(static_cast<unsigned char>(m.title[0])));
  m.evidence.push_back(format("{} has {}, {} more {}, {} in all {}", named(k), counted(k.length, "item"),
                              number(k.per_period), every(c), amount(k.bytes_per_period), every(c)));
  if (!k.chain.empty()) m.evidence.push_back(format("it is reached by: {}", fmt::join(k.chain, ", ")));
  take(m, keep_less(c, k));
  if (k.per_period > 0) count_additions(c, k, m);
  // On a device the births are known of what this very container holds.
  if (c.evidence.space != "host")
    for (const Holder& h : c.notes.holders())
      if (!m.born && !h.born.empty() && step_of(k, h) > 0) m.born = h.born.front().place;
  // Of several lines that add to it, the one that was seen to run; the fix is for the line that it was made of.
  for (const Holder& h : c.notes.holders())
    if (!h.puts.empty() && (h.puts.front().by != "only" || h.repeats > 0) && is_same(k, h) &&
        !same_line(h.puts.front().place, k.place)) {
      m.blame = h.puts.front().place;
      m.change.reset();
      break;
    }
  return m;
}

/// What frames that were kept explain, as far as containers do not.
double kept_frames(const Case& c) { return kTable.data * (1 - kTable.most * c.data_share()); }

/// The container that explains most: the user's own line before a library's, and of two that hold one another the one
/// that holds more. What kind of thing it keeps says which cause that is.
std::optional<Match> kept_items(const Case& c) {
  if (!c.growing()) return {};
  Match best;
  best.weight = 0;
  const Container* keeps = nullptr;
  for (const Container& k : c.notes.containers) {
    const bool registry = !k.is_user && k.type == "TensorFlow gradient registry";
    if (!k.still || k.bounded || is_model(k.item_type) || is_figure(k.item_type) || registry) continue;
    const std::string_view cause = kept_cause(c, k);
    if (cause != "C14" && !c.leaking()) continue;
    // A graph, or the frames of an exception, weigh more than what keeps them, and were not weighed.
    Match m{.share = c.share(k) * (k.is_user ? 1 : kTable.library)};
    if (cause == "C36") m.share = keeps_graph(k) ? 1 : k.is_user ? kTable.by_count : kTable.library;
    if (cause == "C40" && k.items->traceback) m.share = std::max(m.share, kept_frames(c));
    m.weight = cause != "C14" ? kTable.its_holder : k.is_user ? kTable.plain : kTable.library;
    if (m.share >= kTable.name && m.score() > best.score()) best = m, keeps = &k;
  }
  if (!keeps) return {};
  Match m = container_match(c, *keeps).second;
  m.share = best.share, m.weight = best.weight, m.cause = kept_cause(c, *keeps);
  if (m.share <= kTable.most) m.additions = m.added = 0;
  return m;
}

std::optional<Match> create_graph(const Case& c) {
  if (!c.leaking() || c.rose("torch.with_grad_fn") < kTable.repeats) return {};
  const CountedLine* line = c.notes.line("backward_create_graph");
  if (!line) return {};
  // Gradients with a graph keep the graphs of all steps before them; a list of the user's own is told by C36.
  const bool listed = std::ranges::any_of(c.notes.containers, [](const Container& k) {
    return k.still && k.is_user && is_tensor(k.item_type) && !contains(k.type, "chain");
  });
  Match m{.share = listed ? kTable.by_count * (1 - c.data_share()) : 1,
          .weight = listed ? kTable.plain : kTable.own_words};
  m.blame = line->place;
  m.evidence.push_back(format("{} was called {}, and {:.0f} more tensors with a graph are alive", at(line->place),
                              often(line->count), c.rose("torch.with_grad_fn")));
  return m;
}

/// Objects of a type that only a traceback or a node of a graph has are more and more.
Match kept_objects(const Case& c, const GrowingType& t, Match m, std::string_view what, std::string_view why) {
  m.blame = c.growing_place();
  m.evidence.push_back(format("{} of type {} are alive, {} more {}{}", counted(t.count, what), t.type,
                              number(t.per_period), every(c), why));
  return m;
}

std::optional<Match> custom_function(const Case& c) {
  if (!c.leaking() || !c.notes.has("torch")) return {};
  // A node of a Function written in Python is a Python type of its own: <Name>Backward, alive more and more.
  for (const GrowingType& t : c.notes.types)
    if (t.type.ends_with("Backward") && t.per_period >= 1)
      return kept_objects(c, t, {.share = kTable.data * (1 - c.data_share()), .weight = kTable.made}, "node",
                          ", and gc does not free them");
  return {};
}

std::optional<Match> exception_frames(const Case& c) {
  if (!c.leaking()) return {};
  for (const GrowingType& t : c.notes.types)
    if ((t.type == "traceback" || t.type == "frame") && t.per_period >= kTable.half_each && t.count >= kTable.repeats)
      return kept_objects(c, t, {.share = kept_frames(c), .weight = kTable.counted}, "object",
                          ": each keeps the local variables of its functions");
  return {};
}

bool matplotlib(const Frame& f) { return contains(f.file, "matplotlib"); }

std::optional<Match> figures(const Case& c) {
  const double open = c.rose("pyplot.figures");
  const Container* registry = nullptr;
  for (const Container& k : c.notes.containers)
    if (k.still && (is_figure(k.item_type) || k.type == "pyplot figures")) registry = &k;
  if (!c.leaking() || (open < kTable.repeats && !registry)) return {};
  const std::optional<double> under = c.growth_share(matplotlib);
  Match m{.share = std::max(kTable.mostly, under.value_or(kTable.by_count)) * c.beside_data()};
  if (under && *under < kTable.part) m.share = *under;
  if (const CountedLine* line = c.notes.line("figure"))
    m.blame = line->place;
  else if (registry && registry->is_user && registry->place.line)
    m.blame = registry->place;
  m.holder = "pyplot's registry of figures";
  const Series figures = counter(c.evidence, c.periods, "pyplot.figures");
  if (!figures.empty())
    m.evidence.push_back(format("{:.0f} figures are open at the end, {:.0f} when warm-up was over", figures.y.back(),
                                figures.y.back() - open));
  if (under) m.evidence.push_back(format("{:.0f} % of the sampled growth was allocated by matplotlib", 100 * *under));
  take(m, close_figure(c.notes.line("figure")));
  return m;
}

std::optional<Match> callback_queue(const Case& c) {
  if (!c.leaking() || !c.notes.has("keras")) return {};
  for (const GrowingType& t : c.notes.types) {
    if (!t.type.ends_with("Future") || t.per_period < kTable.pending_each || t.count < kTable.pending) continue;
    Match m{.share = kTable.most, .weight = kTable.library};
    m.evidence.push_back(
        format("{} are pending, {} more {}", counted(t.count, "future"), number(t.per_period), every(c)));
    return m;
  }
  return {};
}

}  // namespace

const std::vector<Cause> kKept = {
    {.id = "C14",
     .title = "A container keeps arrays or objects of every round",
     .fix = "Keep a number of each, write them to disk, or keep the newest only (collections.deque has a maxlen).",
     .threads = {"rabbityl/lepard#12", "tensorflow#34876"},
     .detect = kept_items,
     .in = Cause::In::kBoth},
    {.id = "C36",
     .title = "Tensors are kept together with the graph that made them",
     .fix = "Keep a number (`.item()`, of a tensor with one element), or keep the tensor without its graph "
            "(`.detach()`); evaluate under `with torch.no_grad():`.",
     .threads = {"pytorch#1840", "pytorch#64586", "pytorch#6017"},
     .detect = nullptr,
     .in = Cause::In::kBoth},
    {.id = "C37",
     .title = "backward keeps its graph (create_graph or retain_graph), and parameters and gradients hold one another",
     .fix = "Set the grad of every parameter to None after each step (`optimizer.zero_grad(set_to_none=True)`; "
            "filling it with zeros keeps the graph), or take second derivatives with torch.autograd.grad; leave out "
            "retain_graph=True where backward goes through a graph once.",
     .threads = {"pytorch#4661", "pytorch#1346", "pytorch#71068"},
     .detect = create_graph,
     .in = Cause::In::kBoth},
    {.id = "C38",
     .title = "A hook of a torch module keeps the activations of every forward pass",
     .fix = "Keep only the latest activation or a running statistic, detached, and remove the handle when done.",
     .threads = {"pytorch#82528", "pytorch#46386", "opacus#176"},
     .detect = nullptr,
     .in = Cause::In::kBoth},
    {.id = "C39",
     .title = "A custom autograd Function stores its output on ctx: a cycle through C++ that gc cannot see",
     .fix = "Use `ctx.save_for_backward(y)`.",
     .threads = {"pytorch#25340", "pytorch#5569"},
     .detect = custom_function},
    {.id = "C40",
     .title = "Stored exceptions keep the frames they came through, with all their variables",
     .fix = "Store the error's text, or the error without its frames (`with_traceback(None)`); try again outside of "
            "the except block.",
     .threads = {"pytorch#18853", "pytorch#10348", "pytorch#82218"},
     .detect = exception_frames,
     .in = Cause::In::kBoth},
    {.id = "C16",
     .title = "Figures of matplotlib are made and never closed",
     .fix = "Close each figure with pyplot's `close` when it is saved, or make it without pyplot "
            "(matplotlib.figure.Figure), which keeps none.",
     .threads = {"Clay-foundation/model#158", "tensorflow/models#3603", "matplotlib#8519"},
     .detect = figures},
    {.id = "C17",
     .title = "Keras queues callbacks faster than they run",
     .fix = "Set steps_per_execution, verbose=2, or a callback of your own that overrides on_train_batch_end (then "
            "they run in step).",
     .threads = {"keras#20284"},
     .detect = callback_queue}};

std::pair<const Cause*, Match> container_match(const Case& c, const Container& k) {
  const Cause& cause = cause_of(kept_cause(c, k));
  Match m = kept_match(c, k);
  if (cause.id != "C14") m.title.clear();
  if (cause.id == "C36" && !k.statement) m.fix.clear();
  if (cause.id == "C36") m.evidence.push_back("each of them keeps the graph that made it");
  if (cause.id == "C40" && k.items->traceback)
    m.evidence.push_back("each of them keeps the local variables of the functions it came through");
  if (const double graphs = c.rose("torch.with_grad_fn"); cause.id == "C36" && graphs >= kTable.repeats)
    m.evidence.push_back(
        format("{:.0f} more tensors with a graph behind them are alive than when warm-up was over", graphs));
  if (cause.id == "C38") {
    m.evidence.push_back("it is filled by a hook");
    m.fix += " When the hook has done its work, call `remove` of the handle that registering it gave.";
  }
  return {&cause, std::move(m)};
}

}  // namespace millpond::verdict
