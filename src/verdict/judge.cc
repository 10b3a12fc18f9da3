#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/account.h"
#include "verdict/advice.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"
#include "verdict/forecast.h"
#include "verdict/outside.h"
#include "verdict/sentence.h"
#include "verdict/threads.h"

namespace millpond::verdict {
namespace {

struct Named {
  const Cause* cause;
  Match match;
};

std::vector<Named> matches(const Case& c) {
  std::vector<Named> found;
  for (const Cause* cause : causes()) {
    if (!cause->detect) continue;
    if (std::optional<Match> m = cause->detect(c)) found.push_back({cause, std::move(*m)});
  }
  return found;
}

/// The unit that growth follows. Of the period and what is counted within it the period is named, unless counts that
/// vary explain the growth much better: then it is they that cost memory.
Unit follow(const Case& c, const Match& m) {
  if (m.unit && c.periods.rate(*m.unit) > 0) return *m.unit;
  const Series rss = (c.growth.by_tree ? c.periods.tree : c.periods.rss).since(c.periods.warm);
  const double plain = straightness(rss.x, rss.y);
  for (Unit unit : {Unit::kModel, Unit::kCompile, Unit::kTrace}) {
    const Series count = c.periods.counted(unit).since(c.periods.warm);
    if (count.size() != rss.size()) continue;
    const UnitFit fit = fit_unit(count.y, rss.y);
    if (fit.varies && fit.straight > 0.9 && 1 - fit.straight < 0.5 * (1 - plain)) return unit;
  }
  return c.periods.unit;
}

Finding describe(const Case& c, const Named& n) {
  const Match& m = n.match;
  Finding f;
  f.kind = m.kind;
  f.cause = n.cause->id;
  f.title = m.title.empty() ? n.cause->title : m.title;
  f.fix = m.fix.empty() ? n.cause->fix : m.fix;
  f.fix_change = m.change;
  f.threads = fitting_threads(n.cause->threads, c.notes);
  // A holder whose line was not found has nothing to blame.
  if (m.blame && !(m.blame->file.empty() && m.blame->function.empty())) f.blame = m.blame;
  if (f.blame) f.blame = c.with_text(*f.blame);
  if (m.born && !(f.blame && same_line(*m.born, *f.blame))) f.born_at = c.with_text(*m.born);
  f.holder = m.holder;
  f.chain = m.chain;
  f.evidence = m.evidence;
  return f;
}

/// Of a program that says nothing of its rounds.
Rhythm own_rhythm(const Case& c) {
  if (c.periods.unit != Unit::kSecond) return {};
  std::vector<double> t, rss;
  for (const OsPoint& point : c.evidence.os)
    if (point.rss && point.t >= c.periods.warm) t.push_back(point.t), rss.push_back(double(point.rss->value));
  return rhythm(t, rss);
}

void measure_leak(const Case& c, const Match& m, bool main, Finding& f) {
  const Growth& g = c.growth;
  const double part =
      main ? 1 : m.share;  // the main finding carries what resident memory shows; others their own share
  f.unit = follow(c, m);
  double rate = f.unit == c.periods.unit ? 1 : c.periods.rate(f.unit);
  // A program that says nothing of its rounds: how often the line runs tells more than seconds.
  const bool calls = f.unit == Unit::kSecond && m.additions > 0;
  if (calls) {
    f.unit = Unit::kCall, rate = m.additions;
    f.each = f.blame && f.blame->line > 0 ? format("each time line {} runs", f.blame->line) : "each time something is added";
  }
  f.bytes_per_unit = part * g.slope.value / rate;
  f.bytes_per_unit_range = {part * g.slope.range.low / rate, part * g.slope.range.high / rate};
  f.units_seen = c.periods.length() * rate;
  if (calls && main && m.added > 0) {
    // Seconds are not alike where the machine is busy: what was weighed counts, if it accounts for most of the rise.
    const std::vector<double>& rss = c.periods.rss.y;
    const double rise = rss.empty() ? 0 : std::ranges::max(rss) - rss.front(), weighed = m.added * m.each;
    if (weighed > 0.5 * rise && weighed < 1.4 * rise) {
      const double by_rise = rise / m.added;
      f.bytes_per_unit = m.each;
      f.bytes_per_unit_range = {std::min(m.each, by_rise), std::max(m.each, by_rise)};
      f.units_seen = m.added;
    }
  }
  f.total = to_bytes(f.bytes_per_unit * f.units_seen);
  if (!main) return;
  f.evidence.insert(f.evidence.begin(),
                    format("{} rises by {} {} ({} to {} at 90 %), seen over {} after warm-up", g.measure,
                           amount(f.bytes_per_unit), each(f), amount(f.bytes_per_unit_range.low),
                           amount(f.bytes_per_unit_range.high), seen_over(f)));
  if (const Rhythm found = own_rhythm(c); found.every > 0)
    f.evidence.push_back(format("memory has a rhythm of its own: its shape comes again every {:.2f} s (correlation {:.2f}), and each time {} stay",
                                found.every, found.strength, amount(g.slope.value * found.every)));
  for (const std::string& proof : g.proofs) f.evidence.push_back(proof);
  f.forecast = forecast(c, f.unit);
}

int severity(Kind kind) {
  switch (kind) {
    case Kind::kLeak:
      return 6;
    case Kind::kFragmentation:
      return 5;
    case Kind::kRetention:
      return 4;
    case Kind::kCache:
      return 3;
    case Kind::kReserve:
      return 2;
    case Kind::kUnsure:
      return 1;
    case Kind::kFlat:
      return 0;
  }
  return 0;
}

std::vector<Finding> leaks(const Case& c, std::vector<Named> found) {
  std::erase_if(found, [](const Named& n) { return n.match.kind != Kind::kLeak; });
  std::ranges::stable_sort(found, std::ranges::greater{}, [](const Named& n) { return n.match.score(); });
  std::vector<Finding> findings;
  double explained = 0;
  for (const Named& n : found) {
    const bool main = findings.empty();
    // What is left for a further cause; the nameless ones only speak when nothing else does.
    const bool nameless = n.cause->id == "P1" || n.cause->id == "N1";
    if (!main && (nameless || explained > 0.8 || n.match.share < 0.15)) continue;
    Finding f = describe(c, n);
    Match m = n.match;
    if (!main) m.share = std::min(m.share, 1 - explained);
    measure_leak(c, m, main, f);
    f.sets_verdict = main && c.leaking();
    explained += n.match.share;
    findings.push_back(std::move(f));
  }
  if (findings.empty() && c.growing()) {
    Finding f;
    f.kind = Kind::kLeak;
    f.title = "Memory that is in use grows steadily; what holds it was not seen";
    f.fix =
        "Run it again under the agent (without python -I, -S or -E), so that the lines and what holds them can be "
        "named.";
    measure_leak(c, {}, true, f);
    f.sets_verdict = c.leaking();
    findings.push_back(std::move(f));
  }
  return findings;
}

/// One more leak, beside what was measured as a whole: that is not the first one's alone then.
void add_leak(const Case& c, Match m, double rate, double off, double share, std::vector<Finding>& findings) {
  Finding f = describe(c, {*std::ranges::find(causes(), "P1", &Cause::id), std::move(m)});
  f.unit = c.periods.unit;
  f.units_seen = c.periods.length() * share;
  f.bytes_per_unit = rate;
  f.bytes_per_unit_range = {std::max(0.0, rate - off), rate + off};
  f.total = to_bytes(rate * f.units_seen);
  f.sets_verdict = c.leaking() && double(f.total.value) >= c.growth.small;
  if (!findings.empty() && findings.front().sets_verdict && findings.front().unit == f.unit && findings.front().bytes_per_unit > 1.5 * rate) {
    Finding& first = findings.front();
    first.bytes_per_unit -= rate, first.bytes_per_unit_range.low -= rate, first.bytes_per_unit_range.high -= rate;
    first.total = to_bytes(std::max(0.0, double(first.total.value - f.total.value)));
  }
  findings.push_back(std::move(f));
}

/// Holders that accumulate besides what was told, and lines whose blocks no object of Python was seen to hold: each with its own rate, also those too small to set
/// the verdict.
void add_others(const Case& c, std::vector<Finding>& findings) {
  constexpr double kLeast = 0.5e6;  // below it what a program does once in a while looks the same
  constexpr size_t kMostTold = 8;
  constexpr double k95 = 1.96;
  if (c.periods.length() <= 0) return;
  const auto is_told = [&](const Place& p) {
    return std::ranges::any_of(findings, [&](const Finding& f) { return (f.blame && same_line(*f.blame, p)) || (f.born_at && same_line(*f.born_at, p)); });
  };
  std::vector<Place> held;
  const HeapWalk none, &walk = c.notes.walk ? *c.notes.walk : none;
  for (const Holder& h : walk.holders) {
    if (h.how != Holder::How::kReached) continue;
    for (const Born& b : h.born) held.push_back(b.place);
    const double rate = walk.gained_each_round(h);
    if (!h.accumulates() || rate * c.periods.length() * h.active() < kLeast || findings.size() >= kMostTold) continue;
    Match m = holder_match(walk, h);
    const bool told = std::ranges::any_of(findings, [&](const Finding& f) { return f.kind == Kind::kLeak && (f.holder == h.name() || f.chain == h.chain); });
    if (!told && !(m.blame && is_told(*m.blame))) add_leak(c, std::move(m), rate, k95 * rate / std::sqrt(std::max(1.0, h.samples)), h.active(), findings);
  }
  for (const SiteGroup& s : c.sites.groups) {
    if (findings.size() >= kMostTold) return;
    if (!s.user || s.grown < kLeast || is_told(s.place) || std::ranges::any_of(held, [&](const Place& p) { return same_line(p, s.place); })) continue;
    const Course own = course(s.live.x, s.live.y, kLeast / 4);
    if (own.move != Move::kGrows || own.total < kLeast) continue;
    Match m;
    m.blame = s.place;
    m.evidence.push_back(format("{} allocated {} that are still in use, more in every part of the time since round {:.0f}", at(s.place), amount(s.bytes), own.onset));
    add_leak(c, std::move(m), own.slope.value, own.slope.value - own.slope.range.low, (c.periods.x.back() - own.onset) / c.periods.length(), findings);
  }
}

std::vector<Finding> levels(const Case& c, std::vector<Named> found) {
  std::erase_if(found, [](const Named& n) { return n.match.kind == Kind::kLeak; });
  std::ranges::stable_sort(found, [](const Named& a, const Named& b) {
    const auto key = [](const Named& n) {
      return std::tuple(severity(n.match.kind), n.match.weight >= 0.5, n.match.bytes * n.match.weight);
    };
    return key(a) > key(b);
  });
  std::vector<Finding> findings;
  for (const Named& n : found) {
    // One name for each kind of memory: the more particular one has come first.
    const bool said = std::ranges::any_of(findings, [&](const Finding& f) { return f.kind == n.match.kind; });
    if (said && n.match.weight < 0.95) continue;
    Finding f = describe(c, n);
    f.total = to_bytes(n.match.bytes);
    f.unit = Unit::kRun;
    f.units_seen = 1;
    f.bytes_per_unit = 0;
    f.sets_verdict = n.match.kind != Kind::kFlat && n.match.bytes >= c.growth.small && !c.leaking();
    findings.push_back(std::move(f));
  }
  return findings;
}

std::string more(int n, Unit unit) { return counted(n, noun_of(unit), " more"); }

std::string settle(const Case& c) {
  if (!c.periods.enough())
    return format("run at least {}", more(10 - int(std::min<size_t>(9, c.periods.size())), c.periods.size() ? c.periods.unit : Unit::kEpoch));
  if (c.evidence.probes.empty() && !c.growth.has_live && c.evidence.probes_off)
    return "run without --no-probes, so that gc and trim can show what is still in use";
  return format("run {}", more(int(std::max<size_t>(10, c.periods.size())), c.periods.unit));
}

/// Too short, yet it rose: nothing may be said but that.
bool short_and_rising(const Case& c) {
  const Series& rss = c.periods.rss;
  if (c.growth.outcome != Outcome::kTooShort) return false;
  if (rss.size() < 3) return false;
  // The first round always takes something; the later ones should not.
  const double rose = rss.y.back() - rss.y[1];
  return rose > std::max(20e6, 0.03 * c.growth.level) && rss.y.back() > rss.y[rss.size() - 2];
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kLeak:
      return "leak";
    case Kind::kFragmentation:
      return "fragmentation";
    case Kind::kRetention:
      return "retention";
    case Kind::kCache:
      return "cache";
    case Kind::kReserve:
      return "reserve";
    case Kind::kFlat:
      return "flat";
    case Kind::kUnsure:
      return "unsure";
  }
  return "unsure";
}

Verdict judge(const Evidence& evidence) {
  const Case c(evidence);
  Verdict v;
  const std::vector<Named> found = matches(c);
  v.findings = leaks(c, found);
  add_others(c, v.findings);
  for (Finding& f : levels(c, found)) v.findings.push_back(std::move(f));
  for (Finding& f : v.findings) {
    f.process = evidence.process;
    const auto held = std::ranges::find_if(c.notes.containers, [&](const Container& k) { return f.blame && k.place.line == f.blame->line && k.place.file == f.blame->file; });
    if (f.chain.empty() && held != c.notes.containers.end()) f.chain = held->chain;
  }
  std::ranges::stable_sort(v.findings, std::ranges::greater{},
                           [](const Finding& f) { return f.sets_verdict ? 1 + severity(f.kind) : 0; });
  const bool sets = !v.findings.empty() && v.findings.front().sets_verdict;
  v.kind = sets ? v.findings.front().kind : Kind::kFlat;
  // Something that may be a leak comes before everything that is none.
  if (v.kind != Kind::kLeak && (c.growth.outcome == Outcome::kUnproven || short_and_rising(c))) {
    const bool freed = v.kind == Kind::kRetention || v.kind == Kind::kFragmentation || v.kind == Kind::kCache;
    if (!freed) {
      v.kind = Kind::kUnsure;
      v.would_settle = settle(c);
    }
  }
  constexpr int64_t kFewestLooks = 3;
  if (v.findings.empty() && looks(evidence) < kFewestLooks) {
    v.kind = Kind::kUnsure;
    v.too_short = true;
    v.would_settle = "let it run for a second or longer";
  }
  v.advice = advice(c);
  if (std::optional<Account> a = account(c)) v.account = std::make_shared<const Account>(std::move(*a));
  v.sentence = sentence(c, v);
  answer_from_outside(evidence, v);
  return v;
}

}  // namespace millpond::verdict
