// What fills and stops.
#include <algorithm>
#include <span>

#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> bounded_holder(const Case& c) {
  if (c.leaking()) return {};
  for (const Container& k : c.notes.containers) {
    const double bytes = k.per_period > 0 ? k.bytes_per_period / k.per_period * k.length : 0;
    const bool ends = k.bounded.has_value() || ((!k.still || !k.rising) && c.growth.outcome == Outcome::kStopped);
    // What grew by the clock only was filled before the program's rounds began: data, not a cache.
    const bool before = !k.bounded && k.rounds == "timer" && c.periods.unit != Unit::kSecond;
    if (!ends || before || bytes < c.least(kTable.named, kTable.named_share)) continue;
    Match m{.kind = Kind::kCache, .share = 1, .bytes = bytes};
    m.blame = k.place;
    m.holder = tell(k);
    m.fills = k.bounded && k.length < *k.bounded;
    if (m.fills)
      m.title =
          format("It has a limit that it has not reached yet: {:.0f} of at most {:.0f} items", k.length, *k.bounded);
    if (k.bounded)
      m.evidence.push_back(
          format("{} has {:.0f} of at most {:.0f} items, {}", tell(k), k.length, *k.bounded, amount(bytes)));
    else
      m.evidence.push_back(format("{} stopped at {:.0f} items, {}", tell(k), k.length, amount(bytes)));
    return m;
  }
  // A holder that a walk found, and that has ended: the account says what it gained after warm-up.
  for (const AccountPart& p : c.parts()) {
    if (!p.ends || p.range.low < c.growth.small) continue;
    Match m{.kind = Kind::kCache, .share = 1, .weight = kTable.by_level, .bytes = p.bytes};
    m.blame = p.born, m.holder = p.name, m.chain = p.chain;
    m.title = "What fills it has a limit, or has ended";
    m.evidence.push_back(format("{} gained {} after warm-up ({} to {}), and gains no more or has a limit", p.name,
                                amount(p.bytes), amount(p.range.low), amount(p.range.high)));
    return m;
  }
  return {};
}

bool trains(const Case& c, const Place& p) {
  for (const CountedLine& l : c.notes.lines)
    if (same_line(l.place, p)) return true;  // a call into a framework: its memory has other names
  return false;
}

/// Most of it in a block or two: work memory of a library (a BLAS has 32 MiB for each thread), not results.
bool few_blocks(const Case& c, const SiteGroup& group) {
  double large = 0;
  const Mark& last = *c.periods.marks.back();
  for (const SiteState& s : last.sites)
    if (s.blocks < kTable.several && std::ranges::find(group.sites, s.site) != group.sites.end())
      large += double(s.bytes.value);
  return large > kTable.most * group.bytes;
}

std::optional<Match> filled_once(const Case& c) {
  if (c.leaking() || c.periods.marks.empty()) return {};
  const SiteGroup* best = nullptr;
  double most = c.least(kTable.named, kTable.named_share);
  for (const SiteGroup& s : c.sites.groups) {
    if (!s.user || trains(c, s.place) || s.live.size() < 4 || !is_old(s.age)) continue;
    if (s.blocks < kTable.several || few_blocks(c, s) || c.imports(s)) continue;  // made once: a reserve
    // It filled while the program ran: over the periods, or between the first step and the first of them. What was
    // there before is data.
    const double filled = s.bytes - (c.sites.has_begun ? s.begun : s.live.y.front());
    const bool stopped = s.live.y.back() - s.live.y[s.live.size() / 2] < kTable.rest * filled;
    if (filled > most && stopped) most = filled, best = &s;
  }
  if (!best) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = kTable.by_level, .bytes = most};
  m.blame = c.with_text(best->place);
  m.evidence.push_back(format("{} from {} were taken while training began and stayed; nothing was added later",
                              amount(most), at(best->place)));
  return m;
}

/// A line whose blocks are as many at every look, and yet are new ones: a window that moves. What is made anew in each
/// round is none: it is younger than the last round, or comes and goes where a program says nothing of its rounds and
/// is looked at by the clock.
std::optional<Match> renewed(const Case& c) {
  const bool by_clock = c.periods.unit == Unit::kSecond;
  for (const SiteGroup& s : c.sites.groups) {
    const std::vector<double>& y = s.live.y;
    if (!s.user || y.size() < kTable.looks_at_use || s.blocks < double(kTable.looks_at_use) || is_old(s.age)) continue;
    const auto [least, most] = std::ranges::minmax(std::span(y).subspan(y.size() / 2));
    const double filled = least - (by_clock ? y.front() : s.before);
    if (filled < c.least(kTable.named, kTable.level_share) || least < kTable.steady * most) continue;
    if (by_clock ? biggest_step(y) > kTable.bulk * filled : c.outlived(s) < kTable.part * s.bytes) continue;
    Match m{.kind = Kind::kCache, .share = 1, .weight = kTable.by_shape, .bytes = filled};
    m.blame = c.with_text(s.place);
    m.evidence.push_back(
        format("what {} allocated rose to {} and stayed there while new blocks took the place of old ones", at(s.place),
               amount(least)));
    return m;
  }
  return {};
}

std::optional<Match> filled_slowly(const Case& c) {
  if (!c.leaking())
    if (const std::optional<Match> found = renewed(c)) return found;
  // By what is in use, not by resident memory: that also settles slowly when nothing fills. One step is a reserve.
  const std::vector<double>& in_use = c.periods.live.y;
  if (c.leaking() || !c.growth.has_live || c.growth.held.move != Move::kStopped) return {};
  const double filled = in_use.back() - in_use.front();
  if (filled < c.least(kTable.level, kTable.step_share) || biggest_step(in_use) >= kTable.bulk * filled) return {};
  Match m{.kind = Kind::kCache, .share = 1, .weight = kTable.by_shape, .bytes = filled};
  m.evidence.push_back(
      format("what {} in use rose by {} over several rounds and then stopped", c.counted(), amount(filled)));
  return m;
}

}  // namespace

const std::vector<Cause> kCaches = {
    {.id = "K1",
     .title = "A container fills up to its limit and then stops",
     .fix = "Not a leak. A smaller limit takes less memory.",
     .threads = {},
     .detect = bounded_holder,
     .in = Cause::In::kBoth},
    {.id = "K2",
     .title = "Something fills in the first rounds and then stays",
     .fix = "Not a leak. If memory is short, bound it (functools.lru_cache has a maxsize) or keep smaller things.",
     .threads = {},
     .detect = filled_once},
    {.id = "K3",
     .title = "Something fills over several rounds and then stops by itself",
     .fix = "Not a leak. Nothing to fix unless memory is short.",
     .threads = {},
     .detect = filled_slowly,
     .in = Cause::In::kBoth}};

}  // namespace millpond::verdict
