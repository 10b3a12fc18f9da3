#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> loop_in_function(const Case& c) {
  // One trace, and most of what was taken since the start is small blocks under its line: a graph with the whole loop
  // in it.
  const CountedLine* line = c.notes.line("trace");
  if (!line || c.notes.count("trace") > 4 || c.jump() < std::max(200e6, 0.3 * c.growth.level)) return {};
  double small = 0;
  for (const SiteGroup& s : c.sites.groups)
    for (int i : s.sites)
      for (const Frame& f : c.evidence.sites[size_t(i)].frames)
        if (same_line(line->place, f) && s.block() < 64 << 10) {
          small += s.bytes / double(s.sites.size());
          break;
        }
  if (small < 0.5 * c.jump()) return {};
  Match m{.kind = Kind::kReserve, .share = 1, .weight = 0.9, .bytes = small};
  m.blame = line->place;
  m.evidence.push_back(format("{} in small blocks are alive under {}, which was traced {}", amount(small),
                              at(line->place), often(line->count)));
  return m;
}

}  // namespace

const Cause c04_loop_in_function = {
    .id = "C4",
    .title = "A whole training loop was traced into one graph",
    .explanation = "A Python loop inside a tf.function is unrolled: every step becomes nodes of the graph.",
    .fix =
        "Decorate the step, not the loop; make optimizer and variables outside; loop with tf.range if the loop must be "
        "inside.",
    .threads = {"tensorflow#36988", "tensorflow#48732"},
    .detect = loop_in_function};

}  // namespace millpond::verdict
