#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::string commonest(const Notes& notes) {
  std::string name;
  double most = 0;
  for (const auto& [type, count] : notes.gc_types)
    if (count > most && type != "dict" && type != "tuple" && type != "list" && type != "cell" && type != "function")
      most = count, name = type;
  return name;
}

std::optional<Match> cyclic_garbage(const Case& c) {
  const Growth& g = c.growth;
  if (c.leaking() && g.garbage) {  // the collector is turned off
    Match m{.share = 1, .weight = 1};
    m.blame = c.growing_place();
    m.title = "Objects that refer to one another pile up, because Python's garbage collector is turned off";
    m.fix = "Turn it on again (gc.enable()), call gc.collect() at the end of each round, or break the circle (weakref.ref for the way back).";
    if (g.piled > 0)
      m.evidence.push_back(format("{:.0f} objects that only refer to one another were counted, about {}", g.piled, amount(g.piled_bytes)));
    else
      m.evidence.push_back(format("gc.collect() found {:.0f} objects, and {} went back", g.collected, amount(g.returned)));
    if (const std::string type = commonest(c.notes); !type.empty())
      m.evidence.push_back(format("most of them belong to objects of type {}", type));
    return m;
  }
  if (g.outcome == Outcome::kLeak || g.returned < std::max(20e6, 0.05 * g.level) || g.collected < 100) return {};
  // gc may free objects without any change of resident memory until trim: what allocators have in use tells.
  const bool frees = g.garbage || g.by_gc > 0.5 * g.returned;
  if (!frees) return {};
  Match m{.kind = Kind::kRetention, .share = 1, .weight = 1, .bytes = g.returned};
  m.evidence.push_back(format("gc.collect() found {:.0f} objects, and {} went back", g.collected, amount(g.returned)));
  if (const std::string type = commonest(c.notes); !type.empty())
    m.evidence.push_back(format("most of them belong to objects of type {}", type));
  const Series full = counter(c.evidence, c.periods, "gc.full");
  if (full.size() >= 2 && full.y.back() - full.y.front() <= double(c.evidence.probes.size()))
    m.evidence.push_back("Python ran no full collection of its own in this run");
  return m;
}

}  // namespace

const Cause c10_cyclic_garbage = {
    .id = "C10",
    .title = "Objects in reference cycles wait for Python's garbage collector, which counts objects and not bytes",
    .explanation = "Memory rises until a full collection runs, then falls: a sawtooth, not a leak.",
    .fix =
        "Break the cycle (a callback or closure that refers to its owner; use weakref), or call gc.collect() once "
        "every few epochs.",
    .threads = {"tensorflow#44711", "keras#19071", "pytorch#46386"},
    .detect = cyclic_garbage};

}  // namespace millpond::verdict
