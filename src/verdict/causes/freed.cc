// Memory that the program freed or could free, and that stays: garbage in circles, pages that an allocator keeps, pages
// that a few survivors pin.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/fixes.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

struct Retention {
  double bytes = 0;
  bool rising = false;  // resident memory goes up by it from period to period
  std::string how;      // a sentence with numbers
};

std::optional<Retention> retention(const Case& c) {
  const Growth& g = c.growth;
  if (g.outcome == Outcome::kLeak || g.garbage) return {};
  const double rss = g.returned_rss > 0 ? g.returned_rss : g.level;
  // Every allocator keeps some between two steps, and a compiler leaves more: less than a third of the process is not
  // worth a word.
  const double least = std::max(kTable.freed, kTable.freed_share * rss);
  if (!c.evidence.probes.empty()) {
    const std::string how = format("trim gave back {} of {} at once", amount(g.returned), amount(rss));
    // At one probe a wandering process may stand high; what is kept always is what counts.
    if (g.usually >= least && g.usually > kTable.bulk * g.range) return Retention{g.usually, false, how};
    // Kept since before the first probe, and not asked for again after it: a compiler may leave a third of the process,
    // once.
    if (g.returned >= std::max(least, kTable.freed_once * rss) && g.by_gc < kTable.most * g.returned &&
        g.level <= rss - kTable.bulk * g.returned)
      return Retention{g.returned, false, how};
    // It rises again after every probe, and allocators do not have more in use.
    if ((g.outcome == Outcome::kFreed || g.refills) && !g.wanders &&
        g.returned >= std::max(kTable.freed, kTable.refilled * rss))
      return Retention{g.returned, true, how};
    return {};
  }
  // No probe was made: what the allocator itself calls free.
  if (c.periods.heap_free.empty()) return {};
  const double kept = median({c.periods.heap_free.y.end() - long(std::max<size_t>(1, c.periods.heap_free.size() / 3)),
                              c.periods.heap_free.y.end()});
  if (kept < c.least(kTable.freed, kTable.called_free) ||
      (kept < kTable.bulk * g.range && g.outcome != Outcome::kFreed))
    return {};
  return Retention{kept, g.outcome == Outcome::kFreed,
                   format("{} of {} are free in the allocator", amount(kept), amount(g.level))};
}

void blame_temporaries(const Case& c, Match& m) {
  for (const SiteShare& s : temporaries(c.evidence))
    if (s.user) {
      m.blame = c.with_text(s.place);
      m.evidence.push_back(format("most of what was allocated and freed again came from {}: {}", at(s.place), s.bytes));
      return;
    }
}

Match retention_match(const Case& c, const Retention& r) {
  Match m{.kind = Kind::kRetention, .share = 1, .weight = kTable.by_level, .bytes = r.bytes};
  m.holder = "the C allocator (glibc)";
  m.evidence.push_back(r.how);
  if (c.growth.has_live)
    m.evidence.push_back(
        format("what allocators have in use changed by {} after warm-up", amount(c.growth.held.total)));
  if (r.rising) m.evidence.push_back("resident memory rises between probes and falls at each");
  blame_temporaries(c, m);
  return m;
}

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
    Match m{.share = 1};
    m.blame = c.growing_place();
    m.title = "Objects that refer to one another pile up, because Python's garbage collector is turned off";
    m.fix =
        "Turn it on again (gc.enable()), call gc.collect() at the end of each round, or break the circle (weakref.ref "
        "for the way back).";
    if (g.piled > 0)
      m.evidence.push_back(format("{:.0f} objects that only refer to one another were counted, about {}", g.piled,
                                  amount(g.piled_bytes)));
    else
      m.evidence.push_back(
          format("gc.collect() found {:.0f} objects, and {} went back", g.collected, amount(g.returned)));
    m.holder = "garbage in circles of references, which only the collector could free";
    if (const std::string type = commonest(c.notes); !type.empty()) {
      m.holder = format("garbage: objects of type {} in circles of references", type);
      m.evidence.push_back(format("most of them belong to objects of type {}", type));
    }
    return m;
  }
  if (g.outcome == Outcome::kLeak || g.returned < c.least(kTable.freed, kTable.refilled) ||
      g.collected < kTable.circles)
    return {};
  // gc may free objects without any change of resident memory until trim: what allocators have in use tells.
  const bool frees = g.garbage || g.by_gc > kTable.most * g.returned;
  if (!frees) return {};
  Match m{.kind = Kind::kRetention, .share = 1, .bytes = g.returned};
  m.evidence.push_back(format("gc.collect() found {:.0f} objects, and {} went back", g.collected, amount(g.returned)));
  if (const std::string type = commonest(c.notes); !type.empty())
    m.evidence.push_back(format("most of them belong to objects of type {}", type));
  const Series full = counter(c.evidence, c.periods, "gc.full");
  if (full.size() >= 2 && full.y.back() - full.y.front() <= double(c.evidence.probes.size()))
    m.evidence.push_back("Python ran no full collection of its own in this run");
  return m;
}

/// What the allocator keeps: of a shuffle buffer, of prediction without training, or of anything else.
std::optional<Match> allocator_keeps(const Case& c) {
  const Stage* stage = c.notes.stage("shuffle");
  std::optional<Retention> r = retention(c);
  const Growth& g = c.growth;
  // Between epochs the buffer is empty and the allocator has kept it: with such a buffer in the program less is enough.
  const double freed = g.returned - g.by_gc;
  if (!r && stage && stage->buffer.value_or(1e9) >= kTable.elements && !c.leaking() && !g.garbage &&
      freed >= std::max(kTable.shuffled, kTable.shuffled_share * g.returned_rss))
    r = Retention{freed, false, format("trim gave back {} of {} at once", amount(freed), amount(g.returned_rss))};
  if (!r) return {};
  Match m = retention_match(c, *r);
  const bool trains = c.notes.line("fit") || c.notes.line("optimizer_step") || c.notes.line("train_on_batch");
  if (stage)
    m.cause = "C21", m.weight = kTable.plain, m.blame = stage->place;
  else if (c.notes.count("predict") >= kTable.repeats && !trains)
    m.cause = "C26", m.weight = kTable.made, m.blame = c.notes.line("predict")->place;
  else
    take(m, give_back(c, m.blame));
  return m;
}

/// Bytes of Python's arenas that hold nothing (sys.getallocatedblocks counts blocks of at most 512 bytes), by the most
/// careful of what was measured; 0: not known.
double empty_in_arenas(const Case& c) {
  if (c.periods.arenas.empty()) return 0;
  const double arenas = c.periods.arenas.y.back();
  double empty = INFINITY;
  const Series blocks = counter(c.evidence, c.periods, "python.blocks");
  if (!blocks.empty()) empty = arenas - blocks.y.back() * kTable.usual_object;
  // All that allocators have taken against all that is sampled alive: the rest lies in arenas, or was never seen.
  if (!c.sites.empty() && !c.periods.live.empty())
    empty = std::min(empty, c.periods.live.y.back() - c.sites.total.y.back());
  return std::isinf(empty) ? 0 : std::clamp(empty, 0.0, arenas);
}

std::optional<Match> pinned_arenas(const Case& c) {
  const double bytes = empty_in_arenas(c);
  if (c.leaking() || bytes < c.least(kTable.level, kTable.arenas)) return {};
  const double arenas = c.periods.arenas.y.back();
  if (bytes < kTable.hollow * arenas) return {};
  Match m{.kind = Kind::kFragmentation, .share = 1, .bytes = bytes};
  m.holder = "Python's arenas of small objects";
  m.evidence.push_back(format("Python's arenas have {}, of which about {} hold nothing: a few living objects pin each",
                              amount(arenas), amount(bytes)));
  if (!c.evidence.probes.empty())
    m.evidence.push_back(format("neither gc nor trim returned it ({} at most)", amount(c.growth.returned)));
  blame_temporaries(c, m);
  return m;
}

/// What the C allocator had free just before a probe, and what the probe gave back of it.
struct Pinned {
  double free = 0, returned = 0;
};

/// The first probe after warm-up tells: later ones find only what was freed since, while the allocator goes on to call
/// pages free that trim has returned.
std::optional<Pinned> at_first_probe(const Case& c) {
  for (const Probe& probe : c.evidence.probes) {
    if (early(probe, c.periods) || probe.after_trim.value <= 0) continue;
    const Mark* before = nullptr;
    for (const Mark& m : c.evidence.marks)
      if (m.t <= probe.t && m.heap_free) before = &m;
    if (!before) return {};
    return Pinned{double(before->heap_free->value), double((probe.rss - probe.after_trim).value)};
  }
  return {};
}

std::optional<Match> pinned_heap(const Case& c) {
  if (c.leaking()) return {};
  const std::optional<Pinned> p = at_first_probe(c);
  if (!p || p->free < c.least(kTable.level, kTable.called_free) || p->returned > kTable.unreturned * p->free) return {};
  Match m{.kind = Kind::kFragmentation, .share = 1, .bytes = p->free - std::max(0.0, p->returned)};
  m.holder = "the C allocator (glibc)";
  m.evidence.push_back(format(
      "{} are free in the allocator, and trim could return only {} of it: living blocks lie on nearly every page",
      amount(p->free), amount(std::max(0.0, p->returned))));
  blame_temporaries(c, m);
  return m;
}

}  // namespace

const std::vector<Cause> kFreed = {
    {.id = "C10",
     .title = "Objects in reference cycles wait for Python's garbage collector, which counts objects and not bytes",
     .fix = "Break the cycle (a callback or closure that refers to its owner; use weakref), or call gc.collect() "
            "once every few epochs.",
     .threads = {"tensorflow#44711", "keras#19071", "pytorch#46386"},
     .detect = cyclic_garbage},
    {.id = "C21",
     .title = "Elements of the shuffle buffer were freed, and the C allocator keeps their memory",
     .fix = "Not a leak. Shuffle before decoding, use a smaller buffer, preload tcmalloc or jemalloc, or set "
            "MALLOC_ARENA_MAX=2.",
     .threads = {"tensorflow#44176", "tensorflow#34942"},
     .detect = nullptr},
    {.id = "C25",
     .title = "The program freed memory, and the C allocator keeps it for later",
     .fix = "Not a leak. One large array instead of many blocks is given back at once when it is freed; "
            "`ctypes.CDLL(None).malloc_trim(0)` returns what is kept; with many threads MALLOC_ARENA_MAX=2 in the "
            "environment, or preloading jemalloc or tcmalloc, keeps it lower.",
     .threads = {"vllm-omni#6462", "SynaLinks/synalinks#102", "dask#3530"},
     .detect = allocator_keeps},
    {.id = "C26",
     .title = "Memory of prediction on the CPU jumps and wanders, because freed work memory is kept",
     .fix = "Not a leak. Predict in batches of one size; MALLOC_ARENA_MAX=2, jemalloc or tcmalloc keep it lower.",
     .threads = {"keras#19500", "tensorflow#63701"},
     .detect = nullptr},
    {.id = "F1",
     .title = "Freed Python objects left pages that a few survivors pin",
     .fix = "Not a leak. Take the sample while reading instead of making all objects first, read in a process of its "
            "own, or copy what is kept into arrays and drop the objects.",
     .threads = {},
     .detect = pinned_arenas},
    {.id = "F2",
     .title = "Freed blocks left holes between living ones",
     .fix = "Not a leak. Make what stays before or after what goes, copy what is kept into one array, or do the "
            "short-lived work in a process of its own.",
     .threads = {},
     .detect = pinned_heap}};

}  // namespace millpond::verdict
