#include <algorithm>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/torch_hook.h"
#include "verdict/causes/words.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

/// How often something is added, and how large it is. Of a dict of lists that grow the keys do not tell; the blocks do that its line allocated, where
/// they are so large that each is recorded. Of a buffer its bytes do not tell either, but what all its rises are multiples of does, unless pieces of many
/// sizes are added.
void count_additions(const Case& c, const Container& k, Match& m) {
  if (k.is_buffer()) {
    constexpr double kPiece = 4 << 10;
    if (k.step < kPiece) return;
    m.additions = k.per_period / k.step;
    m.added = k.length / k.step;
    m.each = k.step;
    return;
  }
  m.additions = k.per_period;
  m.added = k.length;
  m.each = k.bytes_per_period / k.per_period;
  if (!is_container(k.item_type)) return;
  constexpr double kRecorded = 512 << 10;
  for (const SiteGroup& s : c.sites.groups)
    if (s.user && same_line(s.place, k.place) && s.block() >= kRecorded && s.blocks > 1.5 * k.length && s.slope.value > 0) {
      m.additions = s.slope.value / s.block();
      m.added = s.blocks;
      m.each = s.block();
    }
}

std::optional<Match> kept_items(const Case& c) {
  if (!c.growing()) return {};
  const Container* best = nullptr;
  double share = 0;
  for (const Container& k : c.notes.containers) {
    const bool registry = !k.is_user && k.type == "TensorFlow gradient registry";
    if (!k.still || k.bounded || is_model(k.item_type) || is_figure(k.item_type) || registry ||
        filled_by_hook(c, k) || keeps_graph(k))
      continue;
    // The user's own line before a library's; of two that hold one another, the one that holds more.
    const double own = c.share(k) * (k.is_user ? 1 : 0.7);
    if (own > share) share = own, best = &k;
  }
  if (!best || share < 0.15) return {};
  Match m{.share = share, .weight = best->is_user ? 1.0 : 0.7};
  m.blame = best->place;
  // The source of a program read from standard input is gone: the line that allocates is all that is known.
  if (const std::optional<Place> grows = c.growing_place(); best->place.line == 0 && grows && grows->file == "<stdin>") m.blame = grows;
  if (share > 0.5 && best->per_period > 0) count_additions(c, *best, m);
  m.holder = tell(*best);
  m.title =
      format("{} keeps every {} added to it", named(*best), best->item_type.empty() ? "item" : best->item_type);
  m.title[0] = char(std::toupper(static_cast<unsigned char>(m.title[0])));
  m.evidence.push_back(format("{} has {}, {} more {}, {} in all {}", named(*best), counted(best->length, "item"),
                              number(best->per_period), every(c), amount(best->bytes_per_period), every(c)));
  if (!best->chain.empty()) m.evidence.push_back(format("it is reached by: {}", fmt::join(best->chain, ", ")));
  take(m, keep_less(c, *best));
  // Of several lines that add to it, the one that was seen to run; the fix is for the line that it was made of.
  if (const Holder* h = c.notes.walk ? c.notes.walk->accumulating() : nullptr; h && !h->puts.empty() && h->puts.front().by != "only" && std::ranges::find(best->chain, h->name()) != best->chain.end() && !same_line(h->puts.front().place, best->place)) {
    m.blame = h->puts.front().place;
    m.change.reset();
  }
  return m;
}

}  // namespace

const Cause c14_kept_items = {
    .id = "C14",
    .title = "A container keeps arrays or objects of every round",
    .explanation =
        "A list, dict or attribute of a callback, a data set or a loop gets something in every round and is never "
        "emptied.",
    .fix = "Keep a number of each, write them to disk, or keep the newest only (collections.deque has a maxlen).",
    .threads = {"rabbityl/lepard#12", "tensorflow#34876"},
    .detect = kept_items};

}  // namespace millpond::verdict
