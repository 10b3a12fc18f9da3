#include "verdict/growth.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

/// Resident memory with the dips of probes filled: until it is as high again as before, a probe's own effect would look
/// like growth.
Series fill_dips(const Series& rss, const Evidence& evidence, const Periods& periods) {
  Series s = rss;
  for (const Probe& probe : evidence.probes) {
    const double at = periods.at(probe.t);
    double before = double(probe.rss.value);
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (s.x[i] <= at) continue;
      if (s.y[i] >= before) break;
      // Only what the probe can have taken is given back.
      s.y[i] = std::min(before, s.y[i] + double((probe.rss - probe.after_trim).value));
    }
  }
  return s;
}

/// The slopes of pairs with no probe between them. The first mark after a probe still fills up what was taken and is
/// left out.
Trend within_segments(const Series& rss, const Evidence& evidence, const Periods& periods) {
  constexpr size_t kMost = 1024;
  std::vector<double> slopes;
  double variance = 0;  // of Kendall's S: that of independent segments adds up
  size_t begin = 0;
  std::vector<double> cuts;
  for (const Probe& probe : evidence.probes) cuts.push_back(periods.at(probe.t));
  cuts.push_back(INFINITY);
  for (double cut : cuts) {
    size_t end = begin;
    while (end < rss.x.size() && rss.x[end] <= cut) ++end;
    // Thinned like theil_sen: a watched run has no more marks of a kind than kMost, but a file may.
    const size_t stride = 1 + (end - begin) / kMost;
    double used = 0;
    for (size_t i = begin; i < end; i += stride, ++used)
      for (size_t j = i + stride; j < end && slopes.size() < kMost * kMost; j += stride)
        if (rss.x[j] > rss.x[i]) slopes.push_back((rss.y[j] - rss.y[i]) / (rss.x[j] - rss.x[i]));
    variance += used * (used - 1) * (2 * used + 5) / 18;
    begin = std::min(end + 1, rss.x.size());
  }
  Trend t;
  if (slopes.size() < 3) return t;
  std::ranges::sort(slopes);
  const double n = double(slopes.size());
  const double spread = 1.645 * std::sqrt(variance);
  const auto rank = [&](double r) { return slopes[size_t(std::clamp(r, 0.0, n - 1))]; };
  t.slope = {median(slopes), {rank(std::floor((n - spread) / 2) - 1), rank(std::ceil((n + spread) / 2))}};
  t.total = t.slope.value * (rss.x.back() - rss.x.front());
  t.early = t.late = t.slope.value;
  return t;
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
  g.floors = floors(evidence, periods);
  const size_t n = g.floors.size();
  if (n >= 2 && g.floors.x.back() > g.floors.x.front())
    g.floor_slope = n >= 3 ? theil_sen(g.floors.x, g.floors.y).value
                           : (g.floors.y.back() - g.floors.y.front()) / (g.floors.x.back() - g.floors.x.front());
  std::vector<double> all;
  for (const Probe& probe : evidence.probes) {
    if (early(probe, periods) || probe.after_trim.value <= 0) continue;
    g.collected += double(probe.collected);
    const double returned = double((probe.rss - probe.after_trim).value);
    all.push_back(returned);
    g.returned_by_all += std::max(0.0, returned);
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
  g.small = std::max(5e6, 0.01 * g.level);
  g.solid = std::max(18e6, 0.015 * g.level);
}

bool solid(const Trend& t, const Growth& g) { return t.rises() && t.total >= g.solid && !t.flattens() && !t.jumps; }

/// Sites that leave the same in every cohort: how much of the growth they are.
double cohort_growth(const LiveSites& sites) {
  double sum = 0;
  for (const SiteGroup& s : sites.groups)
    if (s.grown > 0 && s.slope.range.low > 0 && cohorts(s.age) == Cohorts::kEvery) sum += s.grown;
  return sum;
}

/// Nearly all of the rise in a few steps, each about twice the one before: a buffer that doubles when it is found too small, as tf.data's prefetch
/// does. What keeps things adds alike amounts.
bool doubles(const Series& live) {
  double rise = 0, in_steps = 0;
  std::vector<double> steps;
  for (size_t i = 1; i < live.size(); ++i) {
    const double step = live.y[i] - live.y[i - 1];
    rise += std::max(0.0, step);
    if (step > 4e6) steps.push_back(step), in_steps += step;
  }
  if (steps.size() < 2 || steps.size() * 2 > live.size() || in_steps < 0.9 * rise) return false;
  for (size_t i = 1; i < steps.size(); ++i)
    if (steps[i] < 1.6 * steps[i - 1] || steps[i] > 2.5 * steps[i - 1]) return false;
  return true;
}

/// One block that is always young because a larger one takes its place whenever something is added: io.BytesIO, `a = concatenate([a, b])`.
bool is_extended(const SiteGroup& s) {
  int rises = 0;
  for (size_t i = 1; i < s.live.size(); ++i) rises += s.live.y[i] > s.live.y[i - 1];
  return s.blocks < 2 && rises >= 3 && std::ranges::is_sorted(s.live.y);
}

double young_growth(const LiveSites& sites) {
  double sum = 0;
  for (const SiteGroup& s : sites.groups)
    if (s.grown > 0 && cohorts(s.age) == Cohorts::kNew && !is_extended(s)) sum += s.grown;
  return sum;
}

/// What the containers of a kind gain over so many rounds. They hold one another: the largest, not the sum.
template <class Which>
double gained(const Notes& notes, double length, Which which) {
  double most = 0;
  for (const Container& c : notes.containers)
    if (c.still && !c.full && which(c)) most = std::max(most, c.bytes_per_period * length);
  return most;
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

/// Objects that a walk found to keep what was put into them at any time gained enough to be the growth.
bool survivors_explain(const Notes& notes, double length, const Growth& g) {
  return notes.walk && notes.walk->gained_each_round() * length >= std::max(g.small, 0.4 * g.total);
}

void witness(const Evidence& evidence, const Notes& notes, const Periods& periods, const LiveSites& sites, Growth& g) {
  const double rising = std::max(g.rss.slope.value, g.segments.slope.value);
  const double length = periods.length();
  const double wanted = std::max(g.small, 0.3 * g.total);
  const double kept = gained(notes, length, [](const Container& c) { return !c.bounded && c.per_period > 0; });
  const double held = gained(notes, length, [](const Container& c) { return !c.bounded && c.is_user && c.rising; });
  if (held > 0.5 * g.total && held < 1.6 * g.total && g.rss.rises() && !g.rss.flattens()) g.weighed = held / length;

  if (g.has_live) {
    if (solid(g.live, g) && g.live.total >= wanted)
      g.proofs.push_back(
          format("allocators have {} more in use {}", amount(g.live.slope.value), each(periods.unit)));
    else if (!g.weighed && g.live.total < 0.25 * g.total && (!g.has_sampled || g.sampled.total < 0.25 * g.total))
      g.vetoes.push_back(format("what is in use by allocators grew by {} while resident memory grew by {}",
                                amount(std::max(0.0, g.live.total)), amount(g.total)));
    else if (!g.weighed && g.rss.late > 0 && g.live.late < 0.1 * g.rss.late && (!g.has_sampled || g.sampled.late < 0.3 * g.rss.late))
      g.vetoes.push_back("what is in use by allocators did not grow in the later half of the run");
  }
  if (g.has_sampled) {
    const double every = cohort_growth(sites);
    if (every >= wanted)
      g.proofs.push_back(
          format("{} of live bytes come from places that leave about the same behind in every part of the run",
                 amount(every)));
    else if (!g.weighed && young_growth(sites) > 0.6 * std::max(sites.gained, 1.0) && sites.gained > 0.5 * g.total)
      g.vetoes.push_back("what is alive was nearly all born in the last part of the run");
  }
  const double span = g.floors.empty() ? 0 : g.floors.x.back() - g.floors.x.front();
  if (span >= 2) {
    const double grown = g.floors.y.back() - g.floors.y.front();
    if (g.floor_slope >= 0.4 * rising && grown >= std::min(g.solid, 0.4 * g.total))
      g.proofs.push_back(
          format("after gc and trim memory was {} higher at the last probe than at the first", amount(grown)));
    else if (span >= 3 && rising > 0 && g.floor_slope < 0.25 * rising)
      g.vetoes.push_back(format("after gc and trim memory was {} at the first probe and {} at the last",
                                amount(g.floors.y.front()), amount(g.floors.y.back())));
  } else if (!g.floors.empty() && periods.rss.size() > 2) {
    // One probe: what it gave back, against what memory had grown since the second round (the first one takes what it
    // needs).
    const Probe& probe = evidence.probes.back();
    const double at = periods.at(probe.t), back = double((probe.rss - probe.after_trim).value);
    double grown = 0;
    for (size_t i = 1; i < periods.rss.size(); ++i)
      if (periods.rss.x[i] <= at) grown = periods.rss.y[i] - periods.rss.y[1];
    if (back > 0.6 * grown && grown > 0)
      g.vetoes.push_back(format("gc and trim gave back {} of {} that memory had grown", amount(back), amount(grown)));
    else if (back < 0.45 * grown && at >= 3)
      g.proofs.push_back(format("gc and trim gave back only {} of {}", amount(std::max(0.0, back)), amount(grown)));
  }
  g.bounded = gained(notes, length, [](const Container& c) { return c.bounded && c.per_period > 0; }) > 0.5 * g.total;
  if (g.bounded) g.vetoes.push_back("what grows is a container with a limit of its own");
  // Resident memory that goes up in a straight line is touched bit by bit: then it is an allocator that takes ever larger pieces for what is kept.
  if (doubles(periods.live) && kept < 0.4 * g.total && g.rss.straight < 0.97) {
    g.bounded = true;
    g.vetoes.push_back("what is in use rose in a few steps, each about twice the one before: a buffer that doubles");
  }
  if (kept >= std::max(g.small, 0.4 * g.total))
    g.proofs.push_back(format("a container that nothing empties gains {} {}",
                              amount(kept / std::max(1.0, length)), each(periods.unit)));
  else if (survivors_explain(notes, length, g))
    g.proofs.push_back(format("what is reached through {} and others like it was allocated at all times since the rounds began: about {} {}", notes.walk->accumulating()->name(),
                              amount(notes.walk->gained_each_round()), each(periods.unit)));
  for (const auto& [name, words] : kKeepers) {
    const Series s = counter(evidence, periods, name).since(periods.warm);
    if (s.size() < 4) continue;
    // Living objects are counted at probes only: steps, not a line. Later still more than earlier is enough.
    const double half = s.y[s.size() / 2];
    if (s.y.back() - s.y.front() >= 3 && (s.y.back() > half || half > s.y.front()) && std::ranges::is_sorted(s.y)) {
      g.proofs.push_back(format("the number of {} rose from {:.0f} to {:.0f}", words, s.y.front(), s.y.back()));
      break;
    }
  }
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
        falls += live.y[i] < live.y[i - 1] - 0.4 * gained && gained > 5e6;
      }
  }
  return seen > 0 && falls * 2 > seen;
}

Course decide(const Notes& notes, const Periods& periods, const Growth& g) {
  // Whatever allocators and ages seem to say: libraries take large pieces and hand out parts of them, memory may go up in stairs, or one block is
  // replaced by ever larger ones.
  if (g.weighed && g.total >= g.solid && !g.bounded) return Course::kLeak;
  // Everything after warm-up that rises enough to matter, by whichever measure.
  const bool rises = solid(g.rss, g) || solid(g.segments, g) || (g.has_live && solid(g.live, g));
  if (rises) {
    if (g.bounded) return Course::kStopped;  // not yet, but it will
    if (!g.vetoes.empty() && g.proofs.size() <= g.vetoes.size()) return Course::kFreed;
    if (!g.proofs.empty()) return Course::kLeak;
    const bool large = g.total >= std::max(20e6, 0.03 * g.level);
    return large ? Course::kUnproven : Course::kFlat;
  }
  // Little growth needs a holder that explains it: in the user's own code...
  const bool rises_little = (g.rss.rises() && g.rss.total >= g.small && !g.rss.flattens()) ||
                            (g.has_live && g.live.rises() && g.live.total >= g.small);
  // ...or any, with survivors of every age.
  if (rises_little && g.vetoes.empty() && survivors_explain(notes, periods.length(), g)) return Course::kLeak;
  if (rises_little && g.vetoes.empty())
    for (const Container& c : notes.containers)
      if (c.still && c.is_user && !c.bounded &&
          c.bytes_per_period * periods.length() >= std::max(g.small, 0.4 * g.total))
        return Course::kLeak;
  const bool rose = g.level - g.baseline >= g.small || g.rss.flattens();
  return rose ? Course::kStopped : Course::kFlat;
}

/// Whether what allocators have in use tells the rate of a leak better than resident memory does. Free pages come and go, by probes too, and how many
/// lie among kept blocks is another number in every run: what is in use is known to the byte.
bool kept_tells_more(const Periods& periods, const Growth& g) {
  const Slope &kept = g.live.slope, &rss = g.rss.slope, &between = g.segments.slope;
  if (!g.has_live || kept.vague() || kept.value <= 0) return false;
  if (rss.vague() && kept.value > rss.range.low) {
    if (kept.value < 1.1 * rss.range.high) return true;  // it lies within what resident memory shows
    // Resident memory lags: the pages that probes gave back lie among the blocks, and are taken again first.
    if ((kept.value - rss.value) * periods.length() < 1.5 * g.returned_by_all) return true;
  }
  // Between probes resident memory runs well ahead of it.
  if (g.segments.rises() && !between.vague() && between.value > 1.3 * kept.value && rss.value < 0.9 * between.value) return true;
  // What resident memory is ahead by is free in the allocator.
  const double freed = periods.heap_free.since(periods.warm).trend().slope.value;
  return freed > 0 && rss.value > 1.15 * kept.value && std::abs(rss.value - kept.value - freed) < 0.3 * rss.value;
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

Growth find_growth(const Evidence& evidence, const Notes& notes, const Periods& periods, const LiveSites& sites) {
  Growth g;
  read_levels(evidence, periods, g);
  read_probes(evidence, periods, g);
  if (!periods.enough() || periods.rss.size() < 5) {
    g.course = Course::kTooShort;
    return g;
  }
  const Series rss = periods.rss.since(periods.warm);
  g.rss = fill_dips(rss, evidence, periods).trend();
  if (!evidence.probes.empty()) g.segments = within_segments(rss, evidence, periods), g.segments.jumps = g.rss.jumps;
  g.wanders = comes_and_goes(rss, evidence, periods);
  g.has_live = periods.live.since(periods.warm).size() >= 4;
  if (g.has_live) g.live = periods.live.since(periods.warm).trend();
  g.has_sampled = sites.total.since(periods.warm).size() >= 3;
  if (g.has_sampled) g.sampled = sites.total.since(periods.warm).trend();
  const Series tree = periods.tree.since(periods.warm);
  if (tree.size() >= 4) g.tree = tree.trend();

  g.slope = g.rss.slope;
  g.total = std::max({0.0, g.rss.total, g.segments.rises() ? g.segments.total : 0.0});
  // Children that grow while the parent does not.
  if (tree.size() >= 4 && solid(g.tree, g) && g.tree.total >= 20e6 && g.rss.total < 0.3 * g.tree.total) {
    g.by_tree = true;
    g.slope = g.tree.slope;
    g.total = g.tree.total;
    g.measure = "private memory of the process and its children";
    g.course = Course::kLeak;
    g.proofs.push_back(format("memory private to the processes rose by {} {} while the main process's own stayed",
                              amount(g.tree.slope.value), each(periods.unit)));
    return g;
  }
  g.garbage = falls_at_probes(evidence, periods);
  witness(evidence, notes, periods, sites, g);
  g.course = decide(notes, periods, g);
  const Series collector = counter(evidence, periods, "gc.enabled");
  if (!evidence.probes.empty() && double(evidence.probes.back().garbage_bytes.value) > std::max(g.small, 0.4 * g.total)) {
    g.garbage = true;
    g.piled = double(evidence.probes.back().garbage);
    g.piled_bytes = double(evidence.probes.back().garbage_bytes.value);
  }
  if (g.garbage && !collector.empty() && collector.y.back() == 0 && solid(g.segments, g)) {
    g.course = Course::kLeak;
    g.slope = g.segments.slope;
    g.total = g.segments.total;
    g.measure = "resident memory between probes";
    g.vetoes.clear();
    g.proofs = {"Python's garbage collector is turned off, and nothing else frees objects that refer to one another"};
    return g;
  }
  // Resident memory can lag behind a leak (free pages are used first) or run ahead of it (freed pages that survivors
  // pin).
  if (g.course == Course::kLeak) {
    const double live = g.has_live ? g.live.slope.value : g.has_sampled ? g.sampled.slope.value : 0;
    if (live > 0 && !g.rss.rises() && live > 2 * g.rss.slope.value) {
      g.slope = g.has_live ? g.live.slope : g.sampled.slope;
      g.measure = g.has_live ? "bytes in use by allocators" : "sampled live bytes";
      g.total = g.slope.value * periods.length();
    } else if (kept_tells_more(periods, g)) {
      g.slope = g.live.slope;
      g.measure = "bytes in use by allocators";
    } else if (g.weighed && !solid(g.live, g)) {  // what is in use cannot tell, and resident memory may go up in stairs
      g.slope = {*g.weighed, {std::min(*g.weighed, g.rss.slope.range.low), std::max(*g.weighed, g.rss.slope.range.high)}};
      g.measure = "what a container was seen to hold";
    }
    if (g.ahead().value > 1.3 * g.slope.value)
      g.proofs.push_back(format("between probes resident memory rises by {} {}: what is freed among the kept blocks is not used again",
                                amount(g.ahead().value), each(periods.unit)));
  }
  return g;
}

}  // namespace millpond::verdict
