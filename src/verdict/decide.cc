// The decision. Three questions are asked, and an outcome follows from the answers:
//
//   1 still grows at the end   2 referenced, by whom, bounded?           3 gc and trim         outcome
//   yes                        any                                       gc takes it           freed (gc off: leak)
//   yes, or slows              most of it by what has a limit or ended   -                     stopped
//   yes                        kept, and nothing bounds it               -                     leak
//   yes                        nothing says so                           -                     unproven
//   yes, at few looks          nothing says so; the clock saw it end     -                     stopped
//   no, what is in use falls   survivors of every age, beside it         -                     leak
//   since the last rounds      in use, looked at by the clock            -                     leak
//   resident memory alone      containers without a limit weigh so much  -                     leak
//   resident memory alone      nothing more is in use                    free, or comes back   freed
//   resident memory alone      asked for before, and written to now      -                     stopped
//   resident memory alone      nothing says so                           little                unproven
//   in the last round alone    -                                         -                     unproven
//   no                         -                                         -                     stopped, or flat
//
// What comes out is held against the account once more when it is told (contradictions.cc).
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/case.h"
#include "verdict/numbers.h"

namespace millpond::verdict {
namespace {

using Part = AccountPart::Kind;

struct Answers {
  // 1. Does it still grow at the end?
  bool in_use = false;         // what is in use is asked; otherwise resident memory, which is all there is, or which
                               // libraries that hand out parts of large pieces fill evenly
  Course course;               // of that
  std::optional<Course> late;  // of a rise that began in the last rounds, by the clock
  bool last_round = false;     // nothing rose before the last round, and that took more than ever went

  // 2. What of it is referenced, by whom, and is that bounded?
  bool kept = false;     // what is in use grows, or gc and trim leave what resident memory gained
  bool weighed = false;  // a container without a limit gained enough to be the growth
  double survivors = 0;  // bytes that lines and holders leave behind at any time
  bool bounded = false;  // most is held by what has a limit, or has ended
  bool referenced(double small) const {
    return kept || survivors >= small ||
           (course.move != Move::kStep && course.slope.range.low > 0 &&
            (weighed || survivors >= kTable.estimated * course.total));
  }

  // 3. What do gc and trim give back?
  bool garbage = false, collector_off = false;
};

// ---- 1 ----

/// Libraries ask for large pieces and hand out parts of them: in use rises in a few steps, and resident memory, as they
/// are written to, in a straight line. At least two of them since resident memory began to rise, so that one piece that
/// is filled slowly is none.
bool filled_piecewise(const Periods& periods, const Growth& g) {
  if (!g.has_live || g.held.move == Move::kGrows || g.rss.move != Move::kGrows) return false;
  const Series in_use = periods.live.since(g.rss.onset);
  int steps = 0;
  for (size_t i = 1; i < in_use.size(); ++i) steps += in_use.y[i] - in_use.y[i - 1] > kTable.grain;
  return steps >= 2 && in_use.y.back() - in_use.y.front() > kTable.most * g.rss.total;
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

/// Resident memory by the clock in the later half of the rounds, until the program ends: what it lets go of then is no
/// fall.
Series by_clock(const Evidence& evidence, const Periods& periods) {
  Series rss;
  const auto over = std::ranges::find(evidence.marks, "end", &Mark::kind);
  const double end = over == evidence.marks.end() ? INFINITY : over->t, begin = periods.marks[periods.size() / 2]->t;
  for (const OsPoint& p : evidence.os)
    if (p.rss && p.t >= begin && p.t <= end)
      rss.x.push_back(periods.between(p.t)), rss.y.push_back(double(p.rss->value));
  return rss;
}

constexpr size_t kMostPoints = 64;

/// A rise that began so late that few rounds were looked at since: resident memory is looked at by the clock, and tells
/// whether it went on through the last rounds.
std::optional<Course> late_rise(const Evidence& evidence, const Periods& periods, double small) {
  if (periods.seconds <= 0 || periods.size() < 2) return {};
  const Series rss = by_clock(evidence, periods);
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

/// Of many rounds few were looked at: what rose between two of those looks has ended when the clock saw it to.
bool over_by_clock(const Evidence& evidence, const Periods& periods) {
  const bool few =
      periods.unit != Unit::kSecond && double(periods.size()) < kTable.most * (periods.x.back() - periods.x.front());
  if (!few || periods.size() < 2) return false;
  const Series all = by_clock(evidence, periods);
  if (all.empty()) return false;
  Series some;
  const size_t stride = 1 + all.size() / kMostPoints;
  for (size_t i = (all.size() - 1) % stride; i < all.size(); i += stride)
    some.x.push_back(all.x[i]), some.y.push_back(all.y[i]);
  return course(some.x, some.y, kTable.grain).move == Move::kStopped;
}

/// The last round alone took more than what is called small, beyond all that was there before, and more than ever went
/// again: one round is no rise, and what comes after it nobody saw.
bool rises_in_last_round(const Series& s, double small) {
  if (s.size() < size_t(kTable.fewest)) return false;
  const auto before = std::span(s.y).first(s.size() - 1);
  double peak = s.y[1], deepest = 0;
  for (const double y : before.subspan(1)) peak = std::max(peak, y), deepest = std::max(deepest, peak - y);
  return s.y.back() - std::ranges::max(before) > std::max(small, kTable.tooth * deepest);
}

// ---- 2 ----

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

/// What a container with a limit, or without one, gained over so many rounds. They hold one another: the largest, not
/// the sum.
double gained(const Notes& notes, double length, bool bounded) {
  double most = 0;
  for (const Container& c : notes.containers)
    if (c.still && !c.full && c.per_period > 0 && (bounded ? c.bounded.has_value() : !c.bounded && c.rising))
      most = std::max(most, c.bytes_per_period * length);
  return most;
}

bool containers_explain(const Notes& notes, double length, double total) {
  return gained(notes, length, false) >= kTable.estimated * total;
}

double survivors_of(const Case& c) {
  double sum = 0;
  for (const Leak& leak : c.leaks) sum += leak.proven ? leak.bytes : 0;
  return sum;
}

/// What rises is held by something with a limit of its own, which it has not reached yet, or that has ended.
bool is_bounded(const Case& c, double length, const Growth& g, const Answers& a) {
  // Beside it something else may grow that has none.
  const double unbounded = std::max(gained(c.notes, length, false), a.survivors);
  if (unbounded > kTable.estimated * a.course.total || unbounded > g.small) return false;
  if (gained(c.notes, length, true) > kTable.most * a.course.total) return true;
  // By the account; where nothing was sampled that it could be divided by, by the walk alone.
  double ends = 0, held = 0;
  for (const AccountPart& p : c.parts())
    if (p.kind == Part::kHeld) ends += p.ends ? p.bytes : 0, held += p.bytes;
  if (held > 0) return ends > kTable.most * c.account->staying().bytes;
  ends = 0;
  for (const Holder& h : c.notes.holders()) ends += h.ends() ? h.bytes : 0;
  return ends > 0 && ends > kTable.most * c.notes.walk->alive;
}

// ---- 3 ----

bool is_garbage(const Case& c, double total, bool collector_off, Growth& g) {
  if (g.garbage) return true;
  if (!c.evidence.probes.empty() && double(c.evidence.probes.back().garbage_bytes.value) > kTable.estimated * total) {
    g.piled = double(c.evidence.probes.back().garbage);
    g.piled_bytes = double(c.evidence.probes.back().garbage_bytes.value);
    return true;
  }
  if (g.collected > kTable.objects && g.freed > kTable.most) return true;
  if (c.account && c.account->of(Part::kGarbage).bytes > std::max(0.0, kTable.most * c.account->staying().bytes))
    return true;
  const HeapWalk* walk = c.notes.walk ? &*c.notes.walk : nullptr;
  // In a child whose collector was not asked nothing tells circles from native code, but that the program turned it
  // off.
  if (!collector_off || !walk || walk->native + walk->garbage > 0) return false;
  double all = 0, unheld = 0;
  for (const Leak& leak : c.leaks)
    all += leak.bytes, unheld += leak.holder || leak.container || leak.mapped ? 0 : leak.bytes;
  return unheld > kTable.most * all && walk->alive - walk->reached > kTable.most * unheld;
}

/// Resident memory rises and what is in use does not.
Outcome beyond_use(const Case& c, const Growth& g) {
  const double rose = g.rss.total;
  const AccountPart free = c.account ? c.account->of({Part::kFree, Part::kPinned}) : AccountPart{};
  if (free.grows() && free.bytes > kTable.most * c.account->growth) return Outcome::kFreed;
  // More was asked for when the rise began than the process had in memory: it can only be written to.
  const auto at = [&](const Series& s) {
    const auto found = std::ranges::lower_bound(s.x, g.rss.onset);
    return found == s.x.end() ? 0.0 : s.y[size_t(found - s.x.begin())];
  };
  if (g.rss.move != Move::kGrows || at(c.sites.total) - at(c.periods.rss) > kTable.most * rose)
    return Outcome::kStopped;
  if (g.wanders || g.returned > kTable.most * rose) return Outcome::kFreed;
  const double enough = std::max(g.small, kTable.wanders * g.level);
  return rose >= enough && (!c.account || c.account->growth >= enough) ? Outcome::kUnproven : Outcome::kFlat;
}

// ---- the answer ----

void take(const Course& of, std::string measure, Growth& g) {
  g.slope = of.slope, g.total = of.total, g.measure = std::move(measure);
}

void take_survivors(const Case& c, double survivors, Growth& g) {
  g.slope = {}, g.total = survivors, g.measure = "what stays of sampled memory";
  double variance = 0;
  for (const Leak& leak : c.leaks)
    if (leak.proven) g.slope.value += leak.rate, variance += leak.off * leak.off;
  g.slope.range = {g.slope.value - std::sqrt(variance), g.slope.value + std::sqrt(variance)};
}

constexpr const char* kByClock = "resident memory, looked at by the clock,";

Answers answers(const Case& c, Growth& g) {
  Answers a;
  const Periods& p = c.periods;
  const bool piecewise = filled_piecewise(p, g), has_held = g.has_live || g.has_sampled;
  a.in_use = has_held && !piecewise;
  a.course = a.in_use ? g.held : g.rss;
  if (has_held) a.late = late_rise(c.evidence, p, g.small);
  a.last_round = rises_in_last_round(g.has_live ? p.live : c.sites.total, g.small);
  const double length = p.x.back() - std::max(g.held.onset, p.x.front());
  a.kept = a.course.move == Move::kGrows && (has_held || stays_at_probes(c.evidence, p));
  a.weighed = containers_explain(c.notes, length, a.course.total);
  a.survivors = survivors_of(c);
  a.bounded = is_bounded(c, length, g, a);
  const Series on = counter(c.evidence, p, "gc.enabled");
  a.collector_off = !on.empty() && on.y.back() == 0;
  a.garbage = g.garbage = is_garbage(c, a.course.total, a.collector_off, g);
  return a;
}

Outcome outcome_of(const Case& c, const Answers& a, Growth& g) {
  const bool has_held = g.has_live || g.has_sampled;
  take(a.course, a.in_use || !has_held ? g.measure : "resident memory", g);
  if (a.course.rises()) {
    if (a.garbage) return a.collector_off ? Outcome::kLeak : Outcome::kFreed;
    if (a.bounded || (a.course.move == Move::kSlows && a.survivors < g.small)) return Outcome::kStopped;
    g.little = a.referenced(g.small);
    if (g.little && g.total >= g.small) return Outcome::kLeak;
    // Resident memory alone wanders by more than what is in use.
    const double enough = has_held ? g.small : std::max(g.small, kTable.wanders * g.level);
    // A course tells of its highest level; the account must be able to have grown so, unless it is too late for that.
    const bool can = !c.account || a.course.move == Move::kStep || c.account->growth >= enough;
    if (!g.little && g.total >= enough && can && !a.late)
      return over_by_clock(c.evidence, c.periods) ? Outcome::kStopped : Outcome::kUnproven;
  }
  // What falls or wanders beside them hides survivors in the sum.
  if (has_held && !a.garbage && a.survivors >= g.small) return take_survivors(c, a.survivors, g), Outcome::kLeak;
  if (a.late) return take(*a.late, kByClock, g), Outcome::kLeak;
  if (has_held && g.rss.rises() && g.rss.total >= g.small) {
    if (containers_explain(c.notes, c.periods.x.back() - g.rss.onset, g.rss.total))
      return take(g.rss, "resident memory", g), Outcome::kLeak;
    const Outcome rest = beyond_use(c, g);
    if (rest == Outcome::kFreed || rest == Outcome::kUnproven) g.slope = g.rss.slope, g.little = false;
    if (rest != Outcome::kFlat) return g.total = g.rss.total, rest;
  }
  if (a.last_round) return Outcome::kUnproven;
  return g.level - g.baseline >= g.small || g.total >= g.small ? Outcome::kStopped : Outcome::kFlat;
}

// ---- in words ----

/// Sentences with numbers for what was decided.
void tell_proofs(const Case& c, Growth& g) {
  const Periods& periods = c.periods;
  if (g.has_live && g.held.rises())
    g.proofs.push_back(format("{} {} more in use {}", c.counted(), amount(g.held.slope.value), each(periods.unit)));
  const Series left = floors(c.evidence, periods);
  if (left.size() > 1 &&
      left.y.back() - left.y.front() > kTable.estimated * g.slope.value * (left.x.back() - left.x.front()))
    g.proofs.push_back(format("after gc and trim memory was {} higher at the last probe than at the first",
                              amount(left.y.back() - left.y.front())));
  if (const auto held = std::ranges::find_if(c.leaks, [](const Leak& leak) { return leak.holder && leak.proven; });
      held != c.leaks.end())
    g.proofs.push_back(format("what is reached through {} was allocated at all times since round {:.0f}: about {} {}",
                              held->holder->name(), held->since, amount(held->rate), each(periods.unit)));
  if (g.rss.move == Move::kGrows && g.rss.slope.range.low > g.slope.range.high)
    g.proofs.push_back(format("resident memory rises by {} {}: what is freed among the kept blocks is not used again",
                              amount(g.rss.slope.value), each(periods.unit)));
}

}  // namespace

void decide(const Case& c, Growth& g) {
  if (g.outcome == Outcome::kTooShort) return;
  const Answers a = answers(c, g);
  g.outcome = outcome_of(c, a, g);
  // Children that grow while the parent does not.
  if (g.outcome != Outcome::kLeak && g.tree.move == Move::kGrows && g.tree.total >= g.small &&
      g.rss.total < kTable.parent * g.tree.total) {
    g.by_tree = true;
    g.outcome = Outcome::kLeak;
    take(g.tree, "private memory of the process and its children", g);
    g.proofs.push_back(format("memory private to the processes rose by {} {} while the main process's own stayed",
                              amount(g.tree.slope.value), each(c.periods.unit)));
  } else if (g.outcome == Outcome::kLeak) {
    // What was asked for and never written to takes no memory. After a probe resident memory may lag: pages that went
    // back are taken again first.
    const double behind = (g.slope.value - g.rss.slope.value) * (c.periods.x.back() - g.rss.onset);
    if (g.measure != kByClock && g.rss.rises() && g.rss.slope.range.low > 0 &&
        g.rss.slope.value < kTable.most * g.slope.value && g.rss.total < kTable.most * g.total &&
        behind > 2 * g.returned)
      take(g.rss, "resident memory", g);
    tell_proofs(c, g);
  }
  if (g.outcome == Outcome::kLeak) g.little = false;
}

}  // namespace millpond::verdict
