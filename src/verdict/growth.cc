#include "verdict/growth.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/numbers.h"

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
  return down > 0.5 * up;
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

/// Where nothing tells what is in use: gc and trim gave back little of what resident memory had gained since the second
/// round.
bool stays_at_probes(const Evidence& evidence, const Periods& periods) {
  if (evidence.probes.empty() || periods.rss.size() < 3) return false;
  const Probe& probe = evidence.probes.back();
  const auto at = std::ranges::upper_bound(periods.rss.x, periods.at(probe.t));
  const size_t last = size_t(at - periods.rss.x.begin());
  if (last < 4 || probe.after_trim.value <= 0) return false;
  return double((probe.rss - probe.after_trim).value) < kTable.most * (periods.rss.y[last - 1] - periods.rss.y[1]);
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

/// What a container gains over so many rounds. They hold one another: the largest, not the sum.
template <class Which>
double gained(const Notes& notes, double length, Which which) {
  double most = 0;
  for (const Container& c : notes.containers)
    if (c.still && !c.full && c.per_period > 0 && which(c)) most = std::max(most, c.bytes_per_period * length);
  return most;
}

double gained_unbounded(const Notes& notes, double length) {
  return gained(notes, length, [](const Container& c) { return !c.bounded && c.rising; });
}

/// What lines and holders keep that leave about as much behind at any time.
double proven(const std::vector<Leak>& leaks) {
  double sum = 0;
  for (const Leak& leak : leaks) sum += leak.proven ? leak.bytes : 0;
  return sum;
}

/// What rises is held by something with a limit of its own, which it has not reached yet.
bool is_bounded(const Notes& notes, const std::vector<Leak>& leaks, double length, const Growth& g) {
  // Beside it something else may grow that has none.
  const double free = std::max(gained_unbounded(notes, length), proven(leaks));
  if (free > kTable.estimated * g.total || free > g.small) return false;
  if (gained(notes, length, [](const Container& c) { return c.bounded.has_value(); }) > kTable.most * g.total)
    return true;
  if (!notes.walk) return false;
  double bounded = 0;
  for (const Holder& h : notes.walk->holders) bounded += h.ends() ? h.bytes : 0;
  return bounded > kTable.most * notes.walk->alive;
}

/// Containers that nothing bounds were seen to gain enough to be the growth.
bool containers_explain(const Notes& notes, double length, const Growth& g) {
  return gained_unbounded(notes, length) >= kTable.estimated * g.total;
}

// What only a program that keeps something counts up. Each at least three times after warm-up.
const char* const kKeepers[][2] = {{"tf.gradient_registry", "entries of TensorFlow's gradient registry"},
                                   {"tf.funcgraphs", "traced graphs"},
                                   {"keras.models", "living models"},
                                   {"jax.compiles", "JAX compilations"},
                                   {"tf.traces", "tf.function traces"},
                                   {"pyplot.figures", "open figures"},
                                   {"torch.with_grad_fn", "tensors with a graph behind them"},
                                   {"torch.tensors", "living tensors"},
                                   {"jax.live_arrays", "living arrays"}};

/// Sentences with numbers for what was decided.
void tell_proofs(const Evidence& evidence, const Periods& periods, const LiveSites& sites,
                 const std::vector<Leak>& leaks, Growth& g) {
  if (g.has_live && g.held.rises())
    g.proofs.push_back(format("allocators have {} more in use {}", amount(g.held.slope.value), each(periods.unit)));
  double every = 0;
  for (const SiteGroup& s : sites.groups)
    if (s.grown > 0 && s.slope.range.low > 0 && cohorts(s.age) == Cohorts::kEvery) every += s.grown;
  if (every >= kTable.estimated * g.total)
    g.proofs.push_back(format(
        "{} of live bytes come from places that leave about the same behind in every part of the run", amount(every)));
  const Series left = floors(evidence, periods);
  if (left.size() > 1 &&
      left.y.back() - left.y.front() > kTable.estimated * g.slope.value * (left.x.back() - left.x.front()))
    g.proofs.push_back(format("after gc and trim memory was {} higher at the last probe than at the first",
                              amount(left.y.back() - left.y.front())));
  if (const auto held = std::ranges::find_if(leaks, [](const Leak& leak) { return leak.holder && leak.proven; });
      held != leaks.end())
    g.proofs.push_back(format("what is reached through {} was allocated at all times since round {:.0f}: about {} {}",
                              held->holder->name(), held->since, amount(held->rate), each(periods.unit)));
  for (const auto& [name, words] : kKeepers) {
    const Series s = counter(evidence, periods, name).since(periods.warm);
    if (s.size() < 4) continue;
    if (s.y.back() - s.y.front() >= 3 && std::ranges::is_sorted(s.y)) {
      g.proofs.push_back(format("the number of {} rose from {:.0f} to {:.0f}", words, s.y.front(), s.y.back()));
      break;
    }
  }
  if (g.rss.move == Move::kGrows && g.rss.slope.value > 1.3 * g.slope.value)
    g.proofs.push_back(format("resident memory rises by {} {}: what is freed among the kept blocks is not used again",
                              amount(g.rss.slope.value), each(periods.unit)));
}

/// Libraries ask for large pieces and hand out parts of them: in use rises in a few steps, and resident memory, as they
/// are written to, in a straight line. At least two of them since resident memory began to rise, so that one piece that
/// is filled slowly is none.
bool filled_piecewise(const Periods& periods, const Growth& g) {
  if (!g.has_live || g.rss.move != Move::kGrows) return false;
  const Series in_use = periods.live.since(g.rss.onset);
  int steps = 0;
  for (size_t i = 1; i < in_use.size(); ++i) steps += in_use.y[i] - in_use.y[i - 1] > kTable.grain;
  return steps >= 2 && in_use.y.back() - in_use.y.front() > kTable.most * g.rss.total;
}

/// What resident memory gained beyond what is in use: the allocator calls it free, or it was asked for before and is
/// written to only now.
Outcome beyond_use(const Periods& periods, const LiveSites& sites, const Growth& g) {
  if (g.free.rises() && g.free.total > kTable.most * g.rss.total) return Outcome::kFreed;
  // More was asked for when the rise began than the process had in memory: it can only be written to.
  const auto at = [&](const Series& s) {
    const auto found = std::ranges::lower_bound(s.x, g.rss.onset);
    return found == s.x.end() ? 0.0 : s.y[size_t(found - s.x.begin())];
  };
  if (g.rss.move != Move::kGrows || at(sites.total) - at(periods.rss) > kTable.most * g.rss.total)
    return Outcome::kStopped;
  if (g.wanders || g.returned > kTable.most * g.rss.total) return Outcome::kFreed;
  return g.rss.total >= g.small ? Outcome::kUnproven : Outcome::kFlat;
}

/// What allocators had in use last before a moment, wherever in a round that was.
double in_use_until(const Evidence& evidence, double t) {
  double bytes = 0, latest = -INFINITY;
  const auto look = [&](double at, double value) {
    if (at <= t && at > latest) latest = at, bytes = value;
  };
  for (const Mark& m : evidence.marks)
    if (const std::optional<Bytes> in_use = live_of(m)) look(m.t, double(in_use->value));
  for (const SeenProcess& p : evidence.processes)
    if (const auto host = p.spaces.find("host"); p.row == evidence.process && host != p.spaces.end())
      for (const SeenProcess::Point& point : host->second)
        if (point.in_use) look(point.t, double(point.in_use->value));
  return bytes;
}

/// A rise that began so late that few rounds were looked at since: resident memory is looked at by the clock, and tells
/// whether it went on through the last rounds.
std::optional<Course> late_rise(const Evidence& evidence, const Periods& periods, double small) {
  constexpr size_t kMostPoints = 64;
  if (periods.seconds <= 0 || periods.size() < 2) return {};
  const auto over =
      std::ranges::find(evidence.marks, "end", &Mark::kind);  // what a program lets go of at its end is no fall
  const double end = over == evidence.marks.end() ? INFINITY : over->t, begin = periods.marks[periods.size() / 2]->t;
  Series rss;
  for (const OsPoint& p : evidence.os)
    if (p.rss && p.t >= begin && p.t <= end)
      rss.x.push_back(periods.between(p.t)), rss.y.push_back(double(p.rss->value));
  const size_t from = rss.size() > kMostPoints ? rss.size() - kMostPoints : 0;
  Course c = course(std::span(rss.x).subspan(from), std::span(rss.y).subspan(from), kTable.grain);
  if (c.move != Move::kGrows || c.total < small || rss.x.back() - c.onset < kTable.late) return {};
  const auto onset =
      std::ranges::lower_bound(evidence.os, c.onset, {}, [&](const OsPoint& p) { return periods.between(p.t); });
  const double in_use =
      in_use_until(evidence, INFINITY) - in_use_until(evidence, onset == evidence.os.end() ? 0 : onset->t);
  if (in_use < kTable.most * c.total) return {};
  return c;
}

Outcome decide(const Evidence& evidence, const Notes& notes, const Periods& periods, const LiveSites& sites,
               const std::vector<Leak>& leaks, Growth& g) {
  const double length = periods.x.back() - std::max(g.held.onset, periods.x.front());
  const bool has_held = g.has_live || g.has_sampled;
  const bool piecewise = g.held.move != Move::kGrows && filled_piecewise(periods, g);
  if (piecewise) g.measure = "resident memory";
  const Course& main = has_held && !piecewise ? g.held : g.rss;
  g.slope = main.slope;
  g.total = main.total;
  const bool collector_off = [&] {
    const Series on = counter(evidence, periods, "gc.enabled");
    return !on.empty() && on.y.back() == 0;
  }();
  if (!evidence.probes.empty() && double(evidence.probes.back().garbage_bytes.value) > kTable.estimated * g.total) {
    g.garbage = true;
    g.piled = double(evidence.probes.back().garbage);
    g.piled_bytes = double(evidence.probes.back().garbage_bytes.value);
  }
  if (notes.walk && notes.walk->garbage > kTable.most * notes.walk->alive) g.garbage = true;
  // In a child whose collector was not asked nothing tells circles from native code, but that the program turned it
  // off.
  double all = 0, unheld = 0;
  for (const Leak& leak : leaks)
    all += leak.bytes, unheld += leak.holder || leak.container || leak.mapped ? 0 : leak.bytes;
  const bool untold = notes.walk && notes.walk->native + notes.walk->garbage == 0;
  if (collector_off && untold && unheld > kTable.most * all &&
      notes.walk->alive - notes.walk->reached > kTable.most * unheld)
    g.garbage = true;
  if (g.collected > kTable.objects && freed_by_gc(evidence, periods) > kTable.most) g.garbage = true;
  if (main.rises()) {
    if (g.garbage) return collector_off ? Outcome::kLeak : Outcome::kFreed;
    const bool survive = proven(leaks) >= g.small;  // whatever else rises beside them
    if ((main.move == Move::kSlows && !survive) || is_bounded(notes, leaks, length, g)) return Outcome::kStopped;
    const bool kept = main.move == Move::kGrows && (has_held || stays_at_probes(evidence, periods));
    g.little = kept || survive ||
               (main.move != Move::kStep && main.slope.range.low > 0 &&
                (containers_explain(notes, length, g) || proven(leaks) >= kTable.estimated * g.total));
    if (g.little && main.total >= g.small) return Outcome::kLeak;
    // Resident memory alone wanders by more than what is in use.
    const double enough = has_held ? g.small : std::max(g.small, kTable.wanders * g.level);
    if (!g.little && main.total >= enough && !(has_held && late_rise(evidence, periods, g.small)))
      return Outcome::kUnproven;
  }
  // What falls or wanders beside them hides survivors in the sum.
  if (has_held && !g.garbage && proven(leaks) >= g.small) {
    g.slope = {}, g.total = proven(leaks), g.measure = "what stays of sampled memory";
    double variance = 0;
    for (const Leak& leak : leaks)
      if (leak.proven) g.slope.value += leak.rate, variance += leak.off * leak.off;
    g.slope.range = {g.slope.value - std::sqrt(variance), g.slope.value + std::sqrt(variance)};
    return Outcome::kLeak;
  }
  if (const std::optional<Course> late = has_held ? late_rise(evidence, periods, g.small) : std::nullopt) {
    g.slope = late->slope, g.total = late->total, g.measure = "resident memory, looked at by the clock,";
    return Outcome::kLeak;
  }
  if (has_held && g.rss.rises() && g.rss.total >= g.small) {
    g.total = g.rss.total;
    if (containers_explain(notes, periods.x.back() - g.rss.onset, g))
      return g.slope = g.rss.slope, g.measure = "resident memory", Outcome::kLeak;
    const Outcome rest = beyond_use(periods, sites, g);
    if (rest != Outcome::kFlat) {
      if (rest != Outcome::kStopped) g.slope = g.rss.slope, g.little = false;
      return rest;
    }
    g.total = main.total;
  }
  const bool rose = g.level - g.baseline >= g.small || main.total >= g.small;
  return rose ? Outcome::kStopped : Outcome::kFlat;
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

Growth find_growth(const Evidence& evidence, const Notes& notes, const Periods& periods, const LiveSites& sites,
                   const std::vector<Leak>& leaks) {
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
  g.has_sampled = sites.total.size() >= size_t(kTable.fewest);
  if (g.has_sampled) g.sampled = course_of(sites.total);
  g.held = g.has_live ? course_of(periods.live) : g.sampled;
  g.free = course_of(periods.heap_free);
  g.tree = course_of(periods.tree);
  if (g.has_live || g.has_sampled) g.measure = g.has_live ? "memory in use" : "sampled memory in use";
  g.garbage = falls_at_probes(evidence, periods);
  if (!evidence.probes.empty()) g.between = between_probes(periods.rss.since(periods.warm), evidence, periods);
  g.refills = g.between.range.low > 0 &&
              g.between.value * periods.length() / double(evidence.probes.size() + 1) > kTable.most * g.usually;
  g.outcome = decide(evidence, notes, periods, sites, leaks, g);
  // Children that grow while the parent does not.
  if (g.outcome != Outcome::kLeak && g.tree.move == Move::kGrows && g.tree.total >= g.small &&
      g.rss.total < 0.3 * g.tree.total) {
    g.by_tree = true;
    g.slope = g.tree.slope;
    g.total = g.tree.total;
    g.measure = "private memory of the process and its children";
    g.outcome = Outcome::kLeak;
    g.proofs.push_back(format("memory private to the processes rose by {} {} while the main process's own stayed",
                              amount(g.tree.slope.value), each(periods.unit)));
  } else if (g.outcome == Outcome::kLeak) {
    const bool late = g.measure.ends_with(',');
    // What was asked for and never written to takes no memory. After a probe resident memory may lag: pages that went
    // back are taken again first.
    const double behind = (g.slope.value - g.rss.slope.value) * (periods.x.back() - g.rss.onset);
    if (!late && g.rss.rises() && g.rss.slope.range.low > 0 && g.rss.slope.value < kTable.most * g.slope.value &&
        g.rss.total < kTable.most * g.total && behind > 2 * g.returned)
      g.slope = g.rss.slope, g.total = g.rss.total, g.measure = "resident memory";
    tell_proofs(evidence, periods, sites, leaks, g);
  }
  if (g.outcome == Outcome::kLeak) g.little = false;
  return g;
}

}  // namespace millpond::verdict
