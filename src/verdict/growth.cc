#include "verdict/growth.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace millpond::verdict {
namespace {

/// Resident memory with the dips of probes filled: until it is as high again as before, a probe's own effect would look
/// like growth.
Series fill_dips(Series s, const Evidence& evidence, const Periods& periods) {
  for (const Probe& probe : evidence.probes) {
    const double at = periods.at(probe.t), before = double(probe.rss.value);
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (s.x[i] <= at) continue;
      if (s.y[i] >= before) break;
      // Only what the probe can have taken is given back.
      s.y[i] = std::min(before, s.y[i] + double((probe.rss - probe.after_trim).value));
    }
  }
  return s;
}

/// It falls by half of what it rises, or more, where no probe is the reason.
bool comes_and_goes(const Series& rss, const Evidence& evidence, const Periods& periods) {
  double up = 0, down = 0;
  for (size_t i = 1; i < rss.size(); ++i) {
    const bool probed = std::ranges::any_of(evidence.probes, [&](const Probe& probe) {
      const double at = periods.at(probe.t);
      return rss.x[i - 1] <= at && at < rss.x[i];
    });
    if (!probed) (rss.y[i] > rss.y[i - 1] ? up : down) += std::abs(rss.y[i] - rss.y[i - 1]);
  }
  return down > kTable.most * up;
}

void read_probes(const Evidence& evidence, const Periods& periods, Growth& g) {
  std::vector<double> all;
  for (const Probe& probe : evidence.probes) {
    if (early(probe, periods) || probe.after_trim.value <= 0) continue;
    g.collected += double(probe.collected);
    const double returned = double((probe.rss - probe.after_trim).value);
    all.push_back(returned);
    if (returned > g.returned) {
      g.returned = returned;
      g.returned_rss = double(probe.rss.value);
      g.by_gc = double((probe.rss - probe.after_gc).value);
    }
  }
  g.usually = median(all);
}

void read_levels(const Evidence& evidence, const Periods& periods, Growth& g) {
  const Series& rss = periods.rss;
  if (rss.empty()) return;
  const size_t third = std::max<size_t>(1, rss.size() / 3);
  g.level = median({rss.y.end() - long(third), rss.y.end()});
  g.baseline = evidence.baseline_rss.value > 0 ? double(evidence.baseline_rss.value) : rss.y.front();
  g.range = std::ranges::max(rss.y) - std::min(g.baseline, std::ranges::min(rss.y));
  g.small = std::max(kTable.small, kTable.small_share * g.level);
}

/// Resident memory by the slopes of pairs with no probe between them. The first mark after a probe still fills up what
/// was taken and is left out.
Slope between_probes(const Series& rss, const Evidence& evidence, const Periods& periods) {
  constexpr size_t kMostMarks = 1024;
  std::vector<double> slopes, cuts;
  double variance = 0;  // of Kendall's S: that of independent stretches adds up
  for (const Probe& probe : evidence.probes) cuts.push_back(periods.at(probe.t));
  cuts.push_back(INFINITY);
  size_t begin = 0;
  for (double cut : cuts) {
    size_t end = begin;
    while (end < rss.x.size() && rss.x[end] <= cut) ++end;
    const size_t stride = 1 + (end - begin) / kMostMarks;
    double used = 0;
    for (size_t i = begin; i < end; i += stride, ++used)
      for (size_t j = i + stride; j < end && slopes.size() < kMostMarks * kMostMarks; j += stride)
        if (rss.x[j] > rss.x[i]) slopes.push_back((rss.y[j] - rss.y[i]) / (rss.x[j] - rss.x[i]));
    variance += used * (used - 1) * (2 * used + 5) / 18;
    begin = std::min(end + 1, rss.x.size());
  }
  return slopes.size() < 3 ? Slope{} : middle_of(std::move(slopes), variance);
}

/// The first round takes what it needs, whatever comes later.
Course course_of(const Series& all) {
  const size_t skip = all.size() > size_t(kTable.fewest) ? 1 : 0;
  return course(std::span(all.x).subspan(skip), std::span(all.y).subspan(skip), kTable.grain);
}

/// Cyclic garbage is in use until gc runs: allocators' use rises between probes and falls at them.
bool falls_at_probes(const Evidence& evidence, const Periods& periods) {
  int falls = 0, seen = 0;
  const Series& live = periods.live;
  const double least = live.empty() ? 0 : std::ranges::min(live.y);
  for (const Probe& probe : evidence.probes) {
    const double at = periods.at(probe.t);
    for (size_t i = 1; i < live.size(); ++i)
      if (live.x[i - 1] == at) {
        ++seen;
        const double gained = live.y[i - 1] - least;
        falls += live.y[i] < live.y[i - 1] - kTable.estimated * gained && gained > kTable.small;
      }
  }
  return seen > 0 && falls * 2 > seen;
}

/// Of what was gained in use from probe to probe, what gc must have freed: trim gave back that much more than the
/// allocator had called free just before.
double freed_by_gc(const Evidence& evidence, const Periods& periods) {
  double gained = 0, freed = 0, before = periods.live.empty() ? 0 : periods.live.y.front();
  for (const Probe& probe : evidence.probes) {
    const size_t after = size_t(std::ranges::upper_bound(periods.live.x, periods.at(probe.t)) - periods.live.x.begin());
    if (early(probe, periods) || probe.after_trim.value <= 0 || after == 0 ||
        periods.heap_free.size() != periods.live.size())
      continue;
    gained += periods.live.y[after - 1] - before;
    freed += std::max(0.0, double((probe.rss - probe.after_trim).value) - periods.heap_free.y[after - 1]);
    if (after < periods.live.size()) before = periods.live.y[after];
  }
  return gained > 0 ? freed / gained : 0;
}

}  // namespace

std::string amount(double bytes) { return to_string(to_bytes(std::round(bytes))); }

Series counter(const Evidence& evidence, const Periods& periods, const std::string& name) {
  Series s;
  const auto found = evidence.counters.find(name);
  if (found == evidence.counters.end() || found->second.empty()) return s;
  // Only changes are reported: between them the value stands. The agent counts just after the mark is set.
  const double* last = nullptr;
  for (size_t i = 0, next = 0; i < periods.marks.size(); ++i) {
    const double until = i + 1 < periods.marks.size() ? (periods.marks[i]->t + periods.marks[i + 1]->t) / 2 : INFINITY;
    for (; next < found->second.size() && found->second[next].first <= until; ++next)
      last = &found->second[next].second;
    if (!last) continue;
    s.x.push_back(periods.x[i]);
    s.y.push_back(*last);
  }
  return s;
}

Growth measure_growth(const Evidence& evidence, const Periods& periods, const Series& sampled) {
  Growth g;
  read_levels(evidence, periods, g);
  read_probes(evidence, periods, g);
  if (!periods.enough() || periods.rss.size() < size_t(kTable.fewest)) {
    g.outcome = Outcome::kTooShort;
    return g;
  }
  g.rss = course_of(fill_dips(periods.rss, evidence, periods));
  g.wanders = comes_and_goes(periods.rss.since(periods.warm), evidence, periods);
  g.has_live = periods.live.size() >= size_t(kTable.fewest);
  g.has_sampled = sampled.size() >= size_t(kTable.fewest);
  if (g.has_sampled) g.sampled = course_of(sampled);
  g.held = g.has_live ? course_of(periods.live) : g.sampled;
  g.tree = course_of(periods.tree);
  if (g.has_live || g.has_sampled) g.measure = g.has_live ? "memory in use" : "sampled memory in use";
  g.garbage = falls_at_probes(evidence, periods);
  g.freed = freed_by_gc(evidence, periods);
  if (!evidence.probes.empty()) g.between = between_probes(periods.rss.since(periods.warm), evidence, periods);
  g.refills = g.between.range.low > 0 &&
              g.between.value * periods.length() / double(evidence.probes.size() + 1) > kTable.most * g.usually;
  return g;
}

}  // namespace millpond::verdict
