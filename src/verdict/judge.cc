#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "verdict/account.h"
#include "verdict/advice.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"
#include "verdict/devices.h"
#include "verdict/forecast.h"
#include "verdict/outside.h"
#include "verdict/sentence.h"
#include "verdict/statistics.h"
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
    if (cause->in == (c.evidence.space == "host" ? Cause::In::kDevice : Cause::In::kHost)) continue;
    if (!cause->detect) continue;  // it is told by another that is recognised alike
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
    if (fit.varies && fit.straight > kTable.straight && 1 - fit.straight < kTable.most * (1 - plain)) return unit;
  }
  return c.periods.unit;
}

Finding describe(const Case& c, const Named& n) {
  const Match& m = n.match;
  const Cause& cause = m.cause.empty() ? *n.cause : cause_of(m.cause);
  Finding f;
  f.kind = m.kind;
  f.cause = cause.id;
  f.title = m.title.empty() ? cause.title : m.title;
  f.fix = m.fix.empty() ? cause.fix : m.fix;
  f.fix_change = m.change;
  f.threads = fitting_threads(cause.threads, c.notes);
  // A holder whose line was not found has nothing to blame.
  if (m.blame && !(m.blame->file.empty() && m.blame->function.empty())) f.blame = m.blame;
  if (f.blame) f.blame = c.with_text(*f.blame);
  if (m.born && !(f.blame && same_line(*m.born, *f.blame))) f.born_at = c.with_text(*m.born);
  f.holder = m.holder;
  f.chain = m.chain;
  f.evidence = m.evidence;
  f.fills = m.fills;
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

/// When what a leak keeps was allocated, in seconds of the run: by the births of a walk, which tells sixteenths of the
/// time since the rounds began; otherwise since it began.
Interval born_in(const Case& c, const Leak& leak) {
  const std::vector<const Mark*>& marks = c.periods.marks;
  const double begin = marks.front()->t;
  if (leak.holder) {
    // A walk counts rounds as the marks do, or seconds.
    double end = c.periods.unit == Unit::kSecond ? leak.holder->period : begin;
    for (const Mark* m : marks)
      if (c.periods.unit != Unit::kSecond && double(m->index) <= leak.holder->period) end = m->t;
    const auto& births = leak.holder->births;
    const auto last = std::ranges::find_if(births.rbegin(), births.rend(), [](double b) { return b > 0; });
    const double part = (end - begin) / double(kBirths);
    if (part > 0 && last != births.rend())
      return {begin + double(leak.holder->first()) * part, begin + double(births.rend() - last) * part};
  }
  const auto since = std::ranges::lower_bound(c.periods.x, leak.since);
  const size_t at = std::min(size_t(since - c.periods.x.begin()), marks.size() - 1);
  return {marks[at]->t, marks.back()->t};
}

std::optional<Place> birth_line(const Leak& leak) {
  if (leak.line) return leak.line->place;
  return leak.holder && !leak.holder->born.empty() ? std::optional(leak.holder->born.front().place) : std::nullopt;
}

/// Which part of the account a leak is: what holds it says so.
std::string part_of(const Case& c, const Leak& leak) {
  using Part = AccountPart::Kind;
  if (leak.mapped) return std::string(to_string(Part::kShared));
  if (c.growth.garbage) return std::string(to_string(Part::kGarbage));
  if (leak.holder || leak.container) return std::string(to_string(Part::kHeld));
  for (const AccountPart& p : c.parts())
    if (leak.line && p.born && same_line(*p.born, leak.line->place)) return std::string(to_string(p.kind));
  return std::string(to_string(Part::kInUse));
}

/// What was measured as a whole, less what other leaks keep of it.
Leak rest_of(const Case& c, const std::vector<const Leak*>& others) {
  const Growth& g = c.growth;
  Leak rest;
  rest.rate = g.slope.value,
  rest.off = std::max((g.slope.range.high - g.slope.range.low) / 2 * k95 / k90, k95 * kTable.rounding * g.slope.value);
  rest.since = std::max(c.periods.x.front(),
                        c.periods.x.back() - (g.slope.value > 0 ? g.total / g.slope.value : c.periods.length()));
  for (const Leak* leak : others)
    if (leak->rate < rest.rate && !(leak->mapped && g.has_live && g.measure == "memory in use"))
      rest.rate -= leak->rate, rest.off = off_together(rest.off, leak->off);
  rest.bytes = rest.rate * (c.periods.x.back() - rest.since);
  return rest;
}

void measure_leak(const Case& c, const Match& m, const Leak& leak, Finding& f) {
  f.unit = follow(c, m);
  double rate = f.unit == c.periods.unit ? 1 : c.periods.rate(f.unit);
  // A program that says nothing of its rounds: how often the line runs tells more than seconds, and than batches that
  // it does not run in.
  const bool calls = m.additions > 0 && (f.unit == Unit::kSecond || (f.unit == Unit::kBatch && m.additions < 1));
  if (calls) {
    f.unit = Unit::kCall, rate = m.additions;
    f.each =
        f.blame && f.blame->line > 0 ? format("each time line {} runs", f.blame->line) : "each time something is added";
  }
  f.bytes_per_unit = leak.rate / rate;
  f.bytes_per_unit_range = {std::max(0.0, leak.rate - leak.off) / rate, (leak.rate + leak.off) / rate};
  f.units_seen = (c.periods.x.back() - leak.since) * rate;
  // Seconds are not alike where the machine is busy: what was weighed counts, if it accounts for most of the rise.
  const std::vector<double>& in_use = (c.periods.live.empty() ? c.periods.rss : c.periods.live).y;
  const double rise = c.leaks.size() > 1 || in_use.empty() ? leak.bytes : std::ranges::max(in_use) - in_use.front();
  if (const double weighed = m.added * m.each;
      calls && weighed > kTable.most * rise && weighed < kTable.too_much * rise) {
    const double by_rise = rise / m.added;
    f.bytes_per_unit = m.each;
    const double off = k95 * kTable.rounding * m.each;
    f.bytes_per_unit_range = {std::min(m.each, by_rise) - off, std::max(m.each, by_rise) + off};
    f.units_seen = m.added;
  }
  f.total = to_bytes(f.bytes_per_unit * f.units_seen);
  f.born = born_in(c, leak), f.account = part_of(c, leak);
  // Both lines, where what stays is allocated elsewhere.
  if (const std::optional<Place> born = birth_line(leak); born && f.blame && !f.born_at && !same_line(*born, *f.blame))
    f.born_at = c.with_text(*born);
  if (leak.mapped) f.space = "shared";
  f.sets_verdict = c.leaking() && double(f.total.value) >= c.growth.small;
}

void tell_growth(const Case& c, Finding& f) {
  const Growth& g = c.growth;
  f.evidence.insert(
      f.evidence.begin(),
      format("{} rises by {} {} ({} to {} at 95 %), seen over {} after warm-up", g.measure, amount(f.bytes_per_unit),
             each(f), amount(f.bytes_per_unit_range.low), amount(f.bytes_per_unit_range.high), seen_over(f)));
  if (const Rhythm found = own_rhythm(c); found.every > 0)
    f.evidence.push_back(
        format("memory has a rhythm of its own: its shape comes again every {:.2f} s (correlation {:.2f}), and each "
               "time {} stay",
               found.every, found.strength, amount(g.slope.value * found.every)));
  for (const std::string& proof : g.proofs) f.evidence.push_back(proof);
  f.forecast = forecast(c, f.unit);
}

/// The leak that a match is about: one of its lines, or what holds it.
const Leak* leak_of(const Case& c, const Match& m) {
  const auto at = [](const std::optional<Place>& a, const std::optional<Place>& b) {
    return a && b && same_line(*a, *b);
  };
  const auto is_it = [&](const Leak& leak) {
    const std::optional<Place> born = leak.line ? std::optional(leak.line->place) : std::nullopt;
    return at(m.blame, leak.blame) || at(m.blame, born) || at(m.born, born) ||
           (leak.holder &&
            (m.chain == leak.holder->chain || std::ranges::find(m.chain, leak.holder->name()) != m.chain.end()));
  };
  const auto found = std::ranges::find_if(c.leaks, is_it);
  return found == c.leaks.end() ? nullptr : &*found;
}

/// By what keeps it, as far as that was seen.
Named name_of(const Case& c, const Leak& leak) {
  const std::string mapped =
      format("shared mappings and mapped files rose by {} since round {:.0f}, as the system counts them",
             amount(leak.bytes), leak.since);
  if (leak.container) {
    auto [cause, m] = container_match(c, *leak.container);
    if (leak.mapped) m.evidence.push_back(mapped);
    return {cause, std::move(m)};
  }
  const Cause* unknown = &cause_of("P1");
  if (leak.holder) return {unknown, holder_match(*c.notes.walk, *leak.holder)};
  Match m;
  m.blame = leak.blame;
  if (leak.mapped)
    m.title = "Shared mappings or mapped files are made and not closed; what holds them was not found",
    m.evidence.push_back(mapped);
  else if (leak.line && leak.line->blocks >= kTable.several &&
           leak.line->block() > c.evidence.sampling_interval)  // each of them is recorded
    m.additions = leak.rate / leak.line->block(), m.added = leak.line->blocks, m.each = leak.line->block();
  if (leak.blame)
    m.evidence.push_back(
        format("{} allocated {} that are still in use, more in every part of the time since round {:.0f}",
               at(*leak.blame), amount(leak.bytes), leak.since));
  return {unknown, std::move(m)};
}

/// The account has something else that came to be held meanwhile, be it a leak or not.
bool others_grow(const Case& c, const Leak& leak) {
  double beside = 0;
  for (const AccountPart& p : c.parts())
    if (p.kind == AccountPart::Kind::kHeld && !(leak.holder && p.name == leak.holder->name()) &&
        !(p.born && leak.line && same_line(*p.born, leak.line->place)))
      beside += std::max(0.0, p.bytes);
  return leak.mapped || !c.account || beside > kTable.rest * c.account->staying().bytes;
}

/// By name as far as causes explain the growth, then all other leaks, each with its own rate; those too small to set
/// the verdict too.
std::vector<Finding> leaks(const Case& c, std::vector<Named> found) {
  constexpr size_t kMostTold = 8;
  std::erase_if(found, [](const Named& n) { return n.match.kind != Kind::kLeak; });
  std::ranges::stable_sort(found, std::ranges::greater{}, [](const Named& n) { return n.match.score(); });
  std::vector<Finding> findings;
  std::vector<const Leak*> told, others;
  // Where circles pile up, what nobody holds is them, whichever of their objects a line allocates.
  const auto is_circle = [&](const Leak& leak) {
    return c.leaking() && c.growth.garbage && !leak.holder && !leak.container && !leak.mapped;
  };
  for (const Leak& leak : c.leaks)
    if (!is_circle(leak)) others.push_back(&leak);
  double explained = 0;
  for (const Named& n : found) {
    const bool main = findings.empty(), is_nameless = n.cause->id == "P1" || n.cause->id == "N1";
    const Leak* own = leak_of(c, n.match);
    if (own && is_circle(*own)) own = nullptr;
    // What is left for a further cause; the nameless ones only speak when nothing else does.
    if (!main && (is_nameless || !n.match.blame || explained > kTable.explained || n.match.share < kTable.name ||
                  (own && std::ranges::find(told, own) != told.end())))
      continue;
    // One that is most of the growth is the growth, whatever its line is.
    if (main && !own && !others.empty() && others.front()->rate > kTable.others * c.growth.slope.value)
      own = others.front();
    std::erase(others, own);
    Finding f = describe(c, n.cause->id == "P1" && own ? name_of(c, *own) : n);
    Leak share = rest_of(c, main ? others : std::vector<const Leak*>{});
    const double part = main ? 1 : std::min(n.match.share, 1 - explained);
    share.rate *= part, share.off *= part, share.bytes *= part;
    // A framework's tables hold more than what one of its lines allocates.
    const bool one_holder = is_nameless || !n.match.chain.empty();
    // What grows beside nothing else is all that was counted: weights of items and samples leave out what rounding
    // takes.
    const bool alone = main && own && others.empty() && own->rate < share.rate && !others_grow(c, *own);
    const bool whole = alone && own->rate > kTable.others * share.rate;
    const bool its_own = own && !whole && (one_holder || own->rate > kTable.others * share.rate);
    if (whole) share.line = own->line, share.holder = own->holder, share.container = own->container;
    measure_leak(c, n.match, its_own ? *own : share, f);
    explained += n.match.share;
    told.push_back(own);
    findings.push_back(std::move(f));
  }
  for (const Leak* leak : others) {
    if (findings.size() >= kMostTold) break;
    const Named n = name_of(c, *leak);
    findings.push_back(describe(c, n));
    measure_leak(c, n.match, *leak, findings.back());
  }
  std::ranges::stable_sort(findings, std::ranges::greater{}, [](const Finding& f) { return f.sets_verdict; });
  if (c.growing() && !findings.empty()) {
    tell_growth(c, findings.front());
    findings.front().sets_verdict = c.leaking();
  }
  return findings;
}

std::vector<Finding> levels(const Case& c, std::vector<Named> found) {
  std::erase_if(found, [](const Named& n) { return n.match.kind == Kind::kLeak; });
  std::ranges::stable_sort(found, [](const Named& a, const Named& b) {
    const auto key = [](const Named& n) {
      return std::tuple(severity(n.match.kind), n.match.weight >= kTable.no_cause, n.match.bytes * n.match.weight);
    };
    return key(a) > key(b);
  });
  std::vector<Finding> findings;
  double told = 0;
  for (const Named& n : found) {
    // One name for each kind of memory: the more particular one has come first.
    const bool said = std::ranges::any_of(findings, [&](const Finding& f) { return f.kind == n.match.kind; });
    if (said && n.match.weight < kTable.second_name) continue;
    // The jump as a whole has no name: where most of it is told by its own, it would be the same bytes again.
    if (n.cause->id.empty() && told > kTable.most * n.match.bytes) continue;
    told += n.match.bytes;
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
    return format("run at least {}", more(10 - int(std::min<size_t>(9, c.periods.size())),
                                          c.periods.size() ? c.periods.unit : Unit::kEpoch));
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
  return rose > c.least(kTable.short_run, kTable.wanders) && rss.y.back() > rss.y[rss.size() - 2];
}

}  // namespace

std::string_view to_string(Kind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"leak",    "fragmentation", "retention", "cache",
                                                      "reserve", "flat",          "unsure"};
  return kNames.at(size_t(kind));
}

int severity(Kind kind) { return kind == Kind::kLeak ? 7 : kind == Kind::kUnsure ? 6 : int(Kind::kFlat) - int(kind); }

void add_leaks(std::vector<Finding> leaks, const std::string& sentence, Verdict& v) {
  for (Finding& f : v.findings)
    if (f.kind != Kind::kLeak) f.sets_verdict = false;
  const auto place =
      std::ranges::find_if(v.findings, [](const Finding& f) { return f.kind != Kind::kLeak || !f.sets_verdict; });
  if (place == v.findings.begin()) v.kind = Kind::kLeak, v.would_settle.clear(), v.sentence = sentence;
  v.findings.insert(place, std::make_move_iterator(leaks.begin()), std::make_move_iterator(leaks.end()));
}

Verdict judge(const Evidence& evidence) {
  const Case c(evidence);
  Verdict v;
  const std::vector<Named> found = matches(c);
  v.findings = leaks(c, found);
  for (Finding& f : levels(c, found)) v.findings.push_back(std::move(f));
  for (Finding& f : v.findings) {
    f.process = evidence.process;
    const auto held = std::ranges::find_if(c.notes.containers, [&](const Container& k) {
      return f.blame && k.place.line == f.blame->line && k.place.file == f.blame->file;
    });
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
  if (v.findings.empty() && looks(evidence) < kTable.looks) {
    v.kind = Kind::kUnsure;
    v.too_short = true;
    v.would_settle = "let it run for a second or longer";
  }
  v.advice = advice(c);
  // What a finding says of a line need not be advised too, with another count: that one is of all of the run.
  std::erase_if(v.advice, [&](const Advice& a) {
    return a.what == "retracing" && a.place &&
           std::ranges::any_of(v.findings, [&](const Finding& f) { return f.blame && same_line(*f.blame, *a.place); });
  });
  if (c.account) v.account = std::make_shared<const Account>(*c.account);
  v.sentence = sentence(c, v);
  answer_from_outside(evidence, v);
  if (!c.growth.by_tree) hold_to_account(v);  // what is told of the tree is held against the tree's account (accounts)
  if (evidence.space == "host")
    add_devices(evidence, v);
  else if (v.kind != Kind::kLeak)  // whose sentence says so itself
    v.sentence = format("{}: {}", device_name(evidence), v.sentence);
  return v;
}

}  // namespace millpond::verdict
