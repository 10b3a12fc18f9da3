#include "verdict/leaks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "verdict/resample.h"
#include "verdict/statistics.h"

namespace millpond::verdict {
namespace {

/// A holder of what a line allocates, and its share of it.
struct HeldPart {
  const Holder* holder = nullptr;
  double share = 0;
};

/// Who holds what a line allocated, as the last walk found; most first. Nobody: nothing of Python, or it was not looked
/// at since.
std::vector<HeldPart> holders_of(const HeapWalk& walk, const Place& line) {
  std::vector<HeldPart> parts;
  double sum = 0;
  for (const std::vector<Holder>* rows : {&walk.growing, &walk.holders}) {
    for (const Holder& h : *rows)
      for (const Born& b : h.born)
        if (h.how == Holder::How::kReached && same_line(b.place, line)) parts.push_back({&h, b.bytes}), sum += b.bytes;
    if (!parts.empty()) break;  // a block that grows itself is told, not what holds it
  }
  for (HeldPart& part : parts) part.share /= std::max(1.0, sum);
  std::ranges::stable_sort(parts, std::ranges::greater{}, &HeldPart::share);
  return parts;
}

/// All along, or since a line began to keep something: what is made anew in each round has new things only.
bool keeps_since(const Holder& h, double onset, double rounds) {
  if (h.accumulates() || onset >= rounds) return h.accumulates();
  // Births are told by time and the onset by rounds, which are not alike: the first of them near to it is the
  // beginning.
  const size_t part = size_t(double(kBirths) * std::max(0.0, onset - 1) / rounds), first = h.first();
  return h.accumulates(first > part && first - part <= kBirths / 4 ? first : part);
}

std::optional<Place> puts_at(const Holder& h) {
  return h.puts.empty() ? std::nullopt : std::optional(h.puts.front().place);
}

bool grows(const Container& k, const Periods& periods) {
  return k.still && k.rising && !k.bounded && k.bytes_per_period > 0 && k.is_user && k.rounds == periods.kind;
}

/// The agent saw a container grow at the very line that allocates: that is the one.
void take_container(const Notes& notes, const Periods& periods, double share, Leak& leak) {
  const auto k = std::ranges::find_if(
      notes.containers, [&](const Container& c) { return grows(c, periods) && same_line(c.place, leak.line->place); });
  // Unless a walk found most of what the line allocated in something else: then it passes through that container.
  if (k == notes.containers.end()) return;
  const bool elsewhere = leak.holder && step_of(*k, *leak.holder) == 0;
  if (elsewhere && share > kTable.most && !same_line(k->place, *leak.blame)) return;
  leak.container = &*k, leak.blame = k->place;
  if (elsewhere) leak.holder = nullptr;
}

/// Lines that keep about as much in all parts of the time since they began, or whose holders do.
std::vector<Leak> lines_that_keep(const Notes& notes, const HeapWalk& walk, const Periods& periods,
                                  const LiveSites& sites) {
  std::vector<Leak> leaks;
  for (const SiteGroup& line : sites.groups) {
    if (!line.user || line.bytes < kTable.told) continue;
    const Course course = verdict::course(line.live.x, line.live.y, kTable.told / 4);
    if (!course.rises()) continue;
    std::vector<HeldPart> parts = holders_of(walk, line.place);
    double ends = 0;  // held by what has a limit, or takes new things in the place of old ones
    for (const HeldPart& part : parts) ends += part.holder->ends() ? part.share : 0;
    if (ends > kTable.most) continue;
    std::erase_if(parts, [&](const HeldPart& part) {
      return part.holder->ends() || part.share < kTable.part ||
             !keeps_since(*part.holder, course.onset, walk.period - 1);
    });
    // In the last rounds alone: only where a walk found that it came several times since, and is all there.
    const bool often = std::ranges::any_of(
        parts, [](const HeldPart& part) { return part.holder->samples >= kTable.samples && !part.holder->grows; });
    if (course.move == Move::kStep && !often) continue;
    const bool accumulates =
        std::ranges::any_of(parts, [](const HeldPart& part) { return part.holder->accumulates(); });
    if (course.move != Move::kGrows && !accumulates && (course.move == Move::kSlows || parts.empty())) continue;
    const Series rise = line.live.since(course.onset);
    const Rate rate = verdict::rate(rise.x, rise.y);
    if (parts.empty()) parts.push_back({nullptr, 1});
    double told = 0;
    for (const HeldPart& part : parts) told += part.share;
    for (const HeldPart& part : parts) {
      const double share = part.share / told;
      Leak leak{.holder = part.holder,
                .line = &line,
                .container = nullptr,
                .blame = part.holder ? puts_at(*part.holder) : std::nullopt};
      if (!leak.blame) leak.blame = line.place;
      take_container(notes, periods, part.share, leak);
      leak.rate = share * rate.value, leak.off = share * rate.off(), leak.since = course.onset;
      leak.bytes = share * (rise.y.back() - rise.y.front());
      leak.proven = course.move == Move::kGrows;
      leaks.push_back(leak);
    }
  }
  return leaks;
}

/// What one line puts away, or one object holds, is one leak: the lists of a dictionary, an array and the record around
/// it.
std::vector<Leak> joined(std::vector<Leak> all) {
  std::ranges::stable_sort(all, std::ranges::greater{}, &Leak::bytes);
  std::vector<Leak> leaks;
  for (const Leak& leak : all) {
    const auto same = std::ranges::find_if(leaks, [&](const Leak& other) {
      const bool apart = other.container && leak.container && other.container != leak.container;
      return (other.holder && other.holder == leak.holder && !apart) || same_line(*other.blame, *leak.blame);
    });
    if (same == leaks.end()) {
      leaks.push_back(leak);
      continue;
    }
    same->rate += leak.rate, same->off = off_together(same->off, leak.off), same->bytes += leak.bytes;
    same->proven |= leak.proven;
    if (!same->holder) same->holder = leak.holder;
  }
  return leaks;
}

/// Holders that keep what was put into them at any time, and whose lines were seen in too few rounds.
void add_walked(const HeapWalk& walk, const Periods& periods, const LiveSites& sites, std::vector<Leak>& leaks) {
  const auto is_seen = [&](const Born& b) {
    return std::ranges::any_of(sites.groups, [&](const SiteGroup& s) {
      return s.user && same_line(s.place, b.place) && s.live.size() >= size_t(kTable.fewest);
    });
  };
  const double length = periods.x.back() - periods.x.front();
  for (const Holder& h : walk.holders) {
    const double rate = walk.gained_each_round(h);
    const std::optional<Place> puts = puts_at(h);
    const bool told = std::ranges::any_of(
        leaks, [&](const Leak& leak) { return leak.holder == &h || (puts && same_line(*leak.blame, *puts)); });
    if (h.how != Holder::How::kReached || !h.accumulates() || rate <= 0 || told ||
        (!h.goes_on() && std::ranges::any_of(h.born, is_seen)))
      continue;
    Leak leak{.holder = &h, .line = nullptr, .container = nullptr, .blame = puts};
    if (!leak.blame && !h.born.empty()) leak.blame = h.born.front().place;
    leak.rate = rate, leak.off = k95 * leak.rate / std::sqrt(std::max(1.0, h.samples));
    leak.bytes = leak.rate * length * h.active(), leak.since = periods.x.back() - length * h.active();
    if (leak.blame) leaks.push_back(leak);
  }
}

/// How far what a line asked for may lie from what its blocks take, besides chance: sizes are rounded up, of small
/// blocks by a good part.
double rounding_of(const Leak& leak) {
  return leak.bytes * (leak.line && leak.line->block() < kTable.small_block ? kTable.small_rounding : kTable.rounding);
}

/// Until all that was sampled adds up to what allocators count. What differs by more than chance was not sampled at
/// all: nobody's.
void add_up(const Evidence& evidence, const Periods& periods, const LiveSites& sites, std::vector<Leak>& leaks) {
  if (sites.total.size() < 2 || periods.live.size() < 2) return;
  const auto gained = [](const Series& s) { return s.y.back() - s.y.front(); };
  const double sampled = gained(sites.total), counted = gained(periods.live), interval = evidence.sampling_interval;
  const auto variance_of = [&](const Leak& leak) {
    return leak.line ? leak.bytes * sampling_unit(leak.line->block(), interval) + std::pow(rounding_of(leak), 2) : 0;
  };
  double named = 0, variance = std::pow(kTable.pieces, 2);
  for (const Leak& leak : leaks) named += leak.line ? leak.bytes : 0, variance += variance_of(leak);
  variance += std::max(0.0, sampled - named) * interval;
  const double missing = counted - sampled;
  if (std::abs(missing) > kTable.add_up * std::sqrt(variance)) return;
  for (Leak& leak : leaks) {
    if (!leak.line || leak.bytes <= 0) continue;
    const double part = variance_of(leak) / variance;
    const double scale = std::clamp(1 + part * missing / leak.bytes, kTable.most, 1 / kTable.most);
    leak.rate *= scale, leak.bytes *= scale, leak.off *= scale * std::sqrt(std::max(kTable.rounding, 1 - part));
  }
}

/// A pool counts every byte: what holders keep of a device adds up to what it gained, unless something else did.
void add_up_device(const Periods& periods, std::vector<Leak>& leaks) {
  double sum = 0, since = INFINITY;
  for (const Leak& leak : leaks) sum += leak.rate, since = std::min(since, leak.since);
  const Series rise = periods.live.since(std::max(since, periods.warm));
  if (sum <= 0 || rise.size() < size_t(kTable.fewest)) return;
  const Rate counted = verdict::rate(rise.x, rise.y);
  const double scale = counted.value / sum;
  if (std::abs(scale - 1) > kTable.part) return;
  for (Leak& leak : leaks)
    leak.rate *= scale, leak.bytes *= scale, leak.off = counted.off() * leak.rate / counted.value;
}

/// Of a container's gain in a round, by the items that the agent weighed.
double error_of(const Container& k) { return k95 * (k.exact ? kTable.exact : kTable.weighed) * k.bytes_per_period; }

bool is_of(const Container& k, const Leak& leak) {
  const bool held = leak.holder && step_of(k, *leak.holder) > 0;
  return held || same_line(k.place, *leak.blame) || (leak.line && same_line(k.place, leak.line->place));
}

/// Containers that the agent saw to grow until the end. It weighed some of their items: each of both measures counts as
/// far as it is certain, unless they contradict one another.
void add_containers(const Notes& notes, const Periods& periods, std::vector<Leak>& leaks) {
  const double counted =
      periods.live.size() < 2 ? INFINITY : periods.live.y.back() - std::ranges::min(periods.live.y) + kTable.pieces;
  double named = 0;
  for (const Leak& leak : leaks) named += leak.bytes;
  for (const Container& k : notes.containers) {
    if (!grows(k, periods)) continue;
    auto own = std::ranges::find(leaks, &k, &Leak::container);
    if (own == leaks.end()) own = std::ranges::find_if(leaks, [&](const Leak& leak) { return is_of(k, leak); });
    const double weighed = k.bytes_per_period, error = error_of(k);
    if (own == leaks.end()) {
      const double rounds =
          std::min(periods.x.back() - periods.x.front(), k.per_period > 0 ? k.length / k.per_period : 0);
      if (weighed * rounds < kTable.told || k.looks < kTable.looks || k.place.line == 0) continue;
      if (weighed * rounds > kTable.too_much * counted) continue;  // then what was weighed is not its own
      // There is no room for both: a line without a holder that keeps as much allocates what it holds.
      const auto same = std::ranges::find_if(leaks, [&](const Leak& leak) {
        return !leak.holder && !leak.container && std::abs(leak.rate - weighed) < off_together(leak.off, error) &&
               named + weighed * rounds > counted;
      });
      if (same != leaks.end()) {
        same->container = &k;
        continue;
      }
      if (named + weighed * rounds > kTable.too_much * counted) continue;
      named += weighed * rounds;
      Leak leak{.holder = nullptr, .line = nullptr, .container = &k, .blame = k.place};
      leak.rate = weighed, leak.off = error, leak.bytes = weighed * rounds, leak.since = periods.x.back() - rounds;
      leaks.push_back(leak);
    } else if (!own->container || own->container == &k) {
      own->container = &k;
      if (std::abs(weighed - own->rate) > off_together(own->off, error)) continue;
      const double sampled = 1 / std::max(1.0, own->off * own->off), items = 1 / std::max(1.0, error * error);
      const double rate = (sampled * own->rate + items * weighed) / (sampled + items);
      own->bytes *= rate / own->rate;
      own->rate = rate, own->off = 1 / std::sqrt(sampled + items);
    }
  }
}

/// Of a container of mappings that are too small to be sampled: so many whole pages for each thing in it.
bool holds_mappings(const Container& k, const Periods& periods, double rate) {
  constexpr double kPage = 4096, kSampled = 64 << 10;  // from there on each is a block with a line (probe/mappings.h)
  if (!grows(k, periods) || k.per_period <= 0) return false;
  const double each = rate / k.per_period, pages = std::round(each / kPage);
  return pages >= 1 && each < kSampled && k.bytes_per_period < rate &&
         std::abs(each - pages * kPage) < std::min(kTable.mapped_pages * each, kPage / 4);
}

/// What the agent saw a container with a limit gain is no leak of the line that allocates it, whatever a walk found
/// around its items: it is filled at that very line, or gains as much as the line keeps and nobody else holds.
void drop_bounded(const Notes& notes, const Periods& periods, std::vector<Leak>& leaks) {
  std::erase_if(leaks, [&](const Leak& leak) {
    return leak.line && !leak.container && std::ranges::any_of(notes.containers, [&](const Container& k) {
             if (!k.bounded || !k.still || k.bytes_per_period <= 0 || k.rounds != periods.kind) return false;
             if (same_line(k.place, leak.line->place)) return k.bytes_per_period > kTable.most * leak.rate;
             return !leak.holder && std::abs(leak.rate - k.bytes_per_period) < off_together(leak.off, error_of(k));
           });
  });
}

/// A level of mappings by rounds: their addresses, and what of them is in memory.
struct MappedLevel {
  Series mapped, resident;
};
/// The system counts mappings by kind now and then; `often`: what it tells of their pages at every look.
MappedLevel level_of(const SeenProcess& own, const Periods& periods, std::initializer_list<const char*> kinds,
                     const std::vector<SeenProcess::Point>* often) {
  const double begin = periods.marks.front()->t, end = periods.marks.back()->t;
  std::map<double, std::pair<double, double>> levels;
  for (const char* kind : kinds)
    if (const auto found = own.mappings.find(kind); found != own.mappings.end())
      for (const Mapped& m : found->second)
        if (m.t >= begin && m.t <= end)
          levels[m.t].first += double(m.mapped.value), levels[m.t].second += double(m.resident.value);
  MappedLevel level;
  for (const auto& [t, bytes] : levels) {
    level.mapped.x.push_back(periods.between(t)), level.mapped.y.push_back(bytes.first);
    level.resident.x.push_back(periods.between(t)), level.resident.y.push_back(bytes.second);
  }
  Series looks;
  for (const SeenProcess::Point& p : often ? *often : std::vector<SeenProcess::Point>{})
    if (p.resident && p.t >= begin && p.t <= end)
      looks.x.push_back(periods.between(p.t)), looks.y.push_back(double(p.resident->value));
  if (looks.size() > level.resident.size()) level.resident = std::move(looks);
  return level;
}

/// Large mappings are sampled as blocks with a line: then the samples gained more than allocators count, by as much.
bool is_sampled(const Periods& periods, const LiveSites& sites, double onset, double mapped) {
  const Series sampled = sites.total.since(onset), counted = periods.live.since(onset);
  if (sampled.empty()) return false;
  const double beyond =
      sampled.y.back() - sampled.y.front() - (counted.empty() ? 0 : counted.y.back() - counted.y.front());
  return std::abs(beyond - mapped) < std::abs(beyond);
}

/// Shared mappings and mapped files are no allocator's, and the small ones are not sampled: the system counts them.
void add_mapped(const MappedLevel& level, const Notes& notes, const Periods& periods, const LiveSites& sites,
                std::vector<Leak>& leaks) {
  const Course c = course(level.resident.x, level.resident.y, kTable.grain);
  // Pages of one mapping that are read or written one after the other make it larger in memory, and are no more of
  // them.
  if (c.move != Move::kGrows || c.total < kTable.told || c.slope.value <= 0 ||
      course(level.mapped.x, level.mapped.y, kTable.grain).move != Move::kGrows)
    return;
  Leak leak;
  leak.rate = c.slope.value, leak.off = (c.slope.range.high - c.slope.range.low) / 2 * k95 / k90, leak.since = c.onset;
  leak.bytes = leak.rate * (periods.x.back() - c.onset), leak.proven = leak.mapped = true;
  const Container* keeper = nullptr;
  for (const Container& k : notes.containers)
    if (holds_mappings(k, periods, leak.rate) && (!keeper || k.bytes_per_period < keeper->bytes_per_period))
      keeper = &k;
  // Another with this rate is the same memory, sampled as blocks, where resident memory gained no more than one of them.
  const Series rss = periods.rss.since(c.onset);
  const double gained = rss.empty() ? 0 : rss.y.back() - rss.y.front();
  const auto same = std::ranges::find_if(leaks, [&](const Leak& other) {
    if (keeper && is_of(*keeper, other)) return true;
    const double both = leak.bytes + other.rate * (periods.x.back() - c.onset);
    return std::abs(other.rate - leak.rate) < kTable.weighed * leak.rate && gained < kTable.both_resident * both;
  });
  if (same != leaks.end()) return;
  // Where there are many of them they are counted seldom: without something that goes on to fill the last count must
  // not be old.
  if (!keeper && (is_sampled(periods, sites, c.onset, c.total) ||
                  level.resident.x.back() < periods.x.back() - kTable.old * periods.length()))
    return;
  leak.container = keeper;
  if (keeper) leak.blame = keeper->place;
  leaks.push_back(leak);
}

void add_mapped(const Evidence& evidence, const Notes& notes, const Periods& periods, const LiveSites& sites,
                std::vector<Leak>& leaks) {
  const auto own = std::ranges::find(evidence.processes, evidence.process, &SeenProcess::row);
  if (evidence.space != "host" || evidence.process == 0 || own == evidence.processes.end() || periods.size() < 2)
    return;
  const auto often = own->spaces.find("shared");
  add_mapped(level_of(*own, periods, {"shared_memory", "shared_anonymous"},
                      often == own->spaces.end() ? nullptr : &often->second),
             notes, periods, sites, leaks);
  add_mapped(level_of(*own, periods, {"file"}, nullptr), notes, periods, sites, leaks);
}

/// What allocators count has not risen for so long that a leak should have shown: it has ended, whatever was sampled or
/// weighed before.
void drop_ended(const Periods& periods, std::vector<Leak>& leaks) {
  const Course all = course(periods.live.x, periods.live.y, kTable.told / 4);
  if (all.move != Move::kFlat && all.move != Move::kStopped) return;
  const double idle = periods.live.x.back() - std::max(all.last, periods.live.x.front());
  const double seen = all.least * (all.move == Move::kFlat ? kTable.missing : 1);
  std::erase_if(leaks, [&](const Leak& leak) { return !leak.mapped && leak.rate * idle > seen; });
}

}  // namespace

std::vector<Leak> find_leaks(const Evidence& evidence, const Notes& notes, const Periods& periods,
                             const LiveSites& sites) {
  if (periods.x.empty()) return {};
  const HeapWalk none, &walk = notes.walk ? *notes.walk : none;
  std::vector<Leak> leaks = lines_that_keep(notes, walk, periods, sites);
  add_walked(walk, periods, sites, leaks);
  leaks = joined(std::move(leaks));
  std::erase_if(leaks, [](const Leak& leak) { return leak.rate <= 0 || leak.bytes < kTable.told; });
  if (evidence.space == "host")
    add_up(evidence, periods, sites, leaks);
  else
    add_up_device(periods, leaks);
  drop_bounded(notes, periods, leaks);
  add_containers(notes, periods, leaks);
  add_mapped(evidence, notes, periods, sites, leaks);
  drop_ended(periods, leaks);
  for (Leak& leak : leaks) leak.off = std::max(leak.off, k95 * kTable.rounding * leak.rate);
  std::ranges::stable_sort(leaks, std::ranges::greater{}, &Leak::bytes);
  return leaks;
}

}  // namespace millpond::verdict
