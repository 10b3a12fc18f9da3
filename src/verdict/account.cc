#include "verdict/account.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "verdict/case.h"
#include "verdict/causes/words.h"
#include "verdict/division.h"
#include "verdict/process_levels.h"

namespace millpond::verdict {
namespace {

using Part = AccountPart::Kind;
using Shares = std::vector<Division::Share>;

/// By time, of a series that counts rounds.
TimeSeries timed(const Periods& p, const Series& s) {
  TimeSeries out;
  for (size_t i = 0; i < s.size(); ++i) {
    const size_t at = size_t(std::ranges::lower_bound(p.x, s.x[i]) - p.x.begin());
    if (at < p.marks.size()) out.emplace_back(p.marks[at]->t, s.y[i]);
  }
  return out;
}

/// What walks found to be gained since warm-up: by holder, and of all.
struct Gains {
  struct Of {
    const Holder* holder = nullptr;
    double bytes = 0;
  };
  std::vector<Of> holders;
  double alive = 0, reached = 0, garbage = 0;
};

/// Between the walk nearest to the end of warm-up and the last one; of one walk alone by the births since then.
/// `all_of_it`: what the last one found, of whatever time.
Gains gains_of(const Case& c, const HeapWalk& last, bool all_of_it) {
  Gains g;
  const Periods& p = c.periods;
  const bool same = last.kind == p.kind || last.kind.empty();
  const double warm = p.unit == Unit::kSecond || p.marks.empty() ? p.warm : p.warm + double(p.marks.front()->index);
  const HeapWalk* base = nullptr;
  for (const HeapWalk& w : c.notes.earlier)
    if (w.kind == last.kind && same && (!base || std::abs(w.period - warm) < std::abs(base->period - warm))) base = &w;
  if (all_of_it || (base && !(base->period < last.period))) base = nullptr;
  // Births are told in equal parts of the time since the rounds began.
  const double early =
      last.period > 0 && same && !all_of_it ? std::clamp(warm / last.period, 0.0, kTable.walk_early) : 0;
  for (const Holder& h : last.holders) {
    if (h.how != Holder::How::kReached || h.period < last.period) continue;
    double gained = h.bytes;
    if (base) {
      const auto before = std::ranges::find_if(
          base->holders, [&](const Holder& b) { return b.how == h.how && b.type == h.type && b.chain == h.chain; });
      if (before != base->holders.end()) gained -= before->bytes;
    } else {
      double all = 0, late = 0;
      for (size_t i = 0; i < kBirths; ++i)
        all += h.births[i], late += double(i) >= early * double(kBirths) ? h.births[i] : 0;
      if (all > 0) gained *= late / all;
      if (h.bounded && h.length && *h.length >= *h.bounded) gained = 0;  // what comes in takes the place of what goes
    }
    g.holders.push_back({&h, gained});
  }
  g.alive = last.alive - (base ? base->alive : early * last.alive);
  g.reached = last.reached - (base ? base->reached : early * last.reached);
  g.garbage = last.garbage - (base ? base->garbage : early * last.garbage);
  return g;
}

/// Lines and what their sampled blocks gained over the rounds.
struct LineGain {
  const SiteGroup* group = nullptr;
  double bytes = 0;
};
std::vector<LineGain> line_gains(const Case& c, const Rounds& rounds) {
  std::vector<LineGain> lines;
  for (const SiteGroup& s : c.sites.groups) {
    const std::vector<double> y = levels_at(rounds, timed(c.periods, s.live));
    if (!y.empty()) lines.push_back({&s, grown(rounds, y)});
  }
  std::ranges::stable_sort(lines, std::ranges::greater{}, &LineGain::bytes);
  return lines;
}

double unit_of(const Case& c, const SiteGroup& s) { return sampling_unit(s.block(), c.evidence.sampling_interval); }

SampledNoise noise_of(const Case& c, const std::vector<LineGain>& lines) {
  SampledNoise noise;
  double variance = 0;
  const Periods& p = c.periods;
  const double begun = p.marks.front()->t, whole = p.marks.back()->t - begun;
  const auto warm = std::ranges::lower_bound(p.x, p.warm);
  const double early = whole > 0 && warm != p.x.end() ? (p.marks[size_t(warm - p.x.begin())]->t - begun) / whole : 0;
  for (const LineGain& line : lines) {
    double all = 0, born = 0;
    for (size_t i = 0; i < size_t(kAgeParts); ++i) {
      all += double(line.group->age[i].value);
      born += double(i) >= early * kAgeParts ? double(line.group->age[i].value) : 0;
    }
    if (all <= 0) born = std::max(0.0, line.bytes);
    const double gone = std::max(0.0, born - line.bytes);
    noise.born += born, noise.gone += gone;
    variance += unit_of(c, *line.group) * (born + gone);
  }
  noise.unit = noise.born + noise.gone > 0 ? variance / (noise.born + noise.gone) : 0;
  return noise;
}

/// By birth line; `whole` is what all gained.
Shares by_line(const Case& c, const std::vector<LineGain>& lines, double whole, Part kind, const char* name) {
  Shares shares;
  double others = 1;
  for (const LineGain& line : lines) {
    const double weight = line.bytes / whole;
    if (weight < kTable.account_part) break;
    AccountPart part{kind, name};
    part.born = c.with_text(line.group->place);
    shares.push_back({std::move(part), weight, unit_of(c, *line.group)});
    others -= weight;
  }
  if (others != 0) shares.push_back({AccountPart{kind, name}, others, c.evidence.sampling_interval});
  return shares;
}

/// By holder, and what no object of Python holds by birth line.
Shares by_holder(const Case& c, const Gains& gains, const std::vector<LineGain>& lines, double whole) {
  Shares shares;
  double others = gains.reached / gains.alive;
  std::vector<std::pair<Place, double>> told;  // lines of what holders hold
  for (const Gains::Of& g : gains.holders) {
    const double weight = g.bytes / gains.alive;
    if (weight < kTable.account_part) continue;
    AccountPart part{Part::kHeld, g.holder->name(), g.holder->chain};
    if (!g.holder->born.empty()) part.born = g.holder->born.front().place;
    part.ends = g.holder->ends();
    for (const Born& b : g.holder->born) told.emplace_back(b.place, weight * b.bytes / std::max(1.0, g.holder->bytes));
    shares.push_back({std::move(part), weight, g.holder->samples > 0 ? g.holder->bytes / g.holder->samples : 0});
    others -= weight;
  }
  const double unit = c.evidence.sampling_interval, garbage = gains.garbage / gains.alive;
  double native = (gains.alive - gains.reached - gains.garbage) / gains.alive;
  if (others != 0) shares.push_back({AccountPart{Part::kHeld, "other objects of Python"}, others, unit});
  if (garbage != 0) shares.push_back({AccountPart{Part::kGarbage, "garbage until gc runs"}, garbage, unit});
  // Native memory by the lines whose blocks holders do not have.
  std::vector<std::pair<const SiteGroup*, double>> free;
  double sum = 0;
  for (const LineGain& line : lines) {
    double weight = line.bytes / whole;
    for (const auto& [place, held] : told) weight -= same_line(place, line.group->place) ? held : 0;
    if (weight >= kTable.account_part) free.emplace_back(line.group, weight), sum += weight;
  }
  const double all = native;
  for (const auto& [group, weight] : free) {
    const double part_weight = std::min(weight, all * weight / sum);
    if (all <= 0 || part_weight < kTable.account_part) continue;
    AccountPart part{Part::kNative, "held by native code"};
    part.born = c.with_text(group->place);
    shares.push_back({std::move(part), part_weight, unit_of(c, *group)});
    native -= part_weight;
  }
  if (native != 0) shares.push_back({AccountPart{Part::kNative, "held by native code"}, native, unit});
  return shares;
}

Shares shares_of_sampled(const Case& c, const std::vector<LineGain>& lines, double sampled) {
  if (c.notes.walk)
    for (const bool all_of_it : {false, true})
      if (const Gains gains = gains_of(c, *c.notes.walk, all_of_it);
          gains.alive > (all_of_it ? kTable.walk_sees_some : kTable.walk_sees) * sampled)
        return by_holder(c, gains, lines, sampled);
  return c.notes.agent ? by_line(c, lines, sampled, Part::kInUse, "in use, who holds it was not seen")
                       : by_line(c, lines, sampled, Part::kNative, "held by native code");
}

/// What is free by the allocator's own count and still takes memory. Trim gives pages back that stay in that count
/// until they are used again: so much of it as trims gave back, and no more than is free at any time since, is not
/// resident. `pinned`: the share of the rest that trim could not give back.
struct ResidentFree {
  TimeSeries level;
  std::optional<double> pinned{};
};
ResidentFree resident_free(const Case& c) {
  ResidentFree found;
  std::vector<double> kept;
  double away = 0;
  auto probe = c.evidence.probes.begin();
  double there = 0;  // at the mark before
  for (const auto& [t, free] : timed(c.periods, c.periods.heap_free)) {
    for (; probe != c.evidence.probes.end() && probe->t <= t; ++probe) {
      if (probe->after_trim.value <= 0) continue;  // an allocator without trim
      const double given = std::max(0.0, double((probe->after_gc - probe->after_trim).value));
      if (there - away > 0 && !early(*probe, c.periods))
        kept.push_back(1 - std::clamp(given / (there - away), 0.0, 1.0));
      away += given;
    }
    away = std::min(away, free);
    there = free;
    found.level.emplace_back(t, free - away);
  }
  if (!kept.empty()) found.pinned = median(std::move(kept));
  return found;
}

void add_free(const Case& c, const Rounds& rounds, Division& division) {
  const ResidentFree free = resident_free(c);
  Shares shares{{AccountPart{Part::kFree, "free in the allocator"}, 1 - free.pinned.value_or(0), 0}};
  if (free.pinned)
    shares.push_back({AccountPart{Part::kPinned, "free, pinned by what lives between"}, *free.pinned, 0});
  division.add(levels_at(rounds, free.level), std::move(shares));
}

}  // namespace

std::string_view to_string(AccountPart::Kind kind) {
  static constexpr std::string_view kWords[] = {"held",   "native",  "garbage",   "in use",     "free",
                                                "pinned", "stacks",  "files",     "shared",     "copied",
                                                "gpu",    "outside", "untouched", "unexplained"};
  return kWords[size_t(kind)];
}

AccountPart Account::of(std::initializer_list<AccountPart::Kind> kinds) const {
  AccountPart sum{*kinds.begin(), std::string(to_string(*kinds.begin()))};
  double low = 0, high = 0;  // parts are measured apart: their errors add up as squares
  for (const AccountPart& p : parts)
    if (std::ranges::find(kinds, p.kind) != kinds.end()) {
      sum.bytes += p.bytes;
      low += std::pow(p.bytes - p.range.low, 2), high += std::pow(p.range.high - p.bytes, 2);
    }
  sum.range = {sum.bytes - std::sqrt(low), sum.bytes + std::sqrt(high)};
  return sum;
}

AccountPart Account::staying() const {
  return of({Part::kInUse, Part::kHeld, Part::kNative, Part::kGarbage, Part::kShared, Part::kGpu});
}

bool Account::from_outside() const {
  return std::ranges::none_of(parts, [](const AccountPart& p) {
    return p.kind == Part::kHeld || p.kind == Part::kNative || p.kind == Part::kGarbage || p.kind == Part::kInUse ||
           p.kind == Part::kFree || p.kind == Part::kPinned || p.kind == Part::kGpu;
  });
}

Rounds rounds_of(const Periods& p) {
  constexpr size_t kMostRounds = 512;
  Rounds rounds;
  rounds.unit = p.unit;
  const size_t from = size_t(std::ranges::lower_bound(p.x, p.warm) - p.x.begin()),
               n = p.size() - std::min(from, p.size());
  const size_t stride = 1 + n / kMostRounds;
  for (size_t i = from; i < p.size(); ++i)
    if ((p.size() - 1 - i) % stride == 0) rounds.t.push_back(p.marks[i]->t), rounds.x.push_back(p.x[i]);
  return rounds;
}

bool add_inside(const Case& c, const Rounds& rounds, const ProcessLevels* process, bool with_mapped,
                Division& division) {
  const std::vector<double> used = levels_at(rounds, timed(c.periods, c.periods.live)),
                            sampled = levels_at(rounds, timed(c.periods, c.sites.total));
  const std::vector<double> own = process ? process->own_at(rounds) : std::vector<double>();
  const auto gain = [&](const std::vector<double>& level) { return level.empty() ? 0 : grown(rounds, level); };
  const double by_allocator = gain(used), by_samples = gain(sampled), by_system = gain(own);
  add_free(c, rounds, division);
  if (by_samples <= 0) {
    if (!used.empty()) division.add(used, AccountPart{Part::kInUse, "in use, as allocators count"});
    return false;
  }
  const std::vector<LineGain> lines = line_gains(c, rounds);
  const SampledNoise noise = noise_of(c, lines);
  division.set_noise(noise);
  Shares shares = shares_of_sampled(c, lines, by_samples);
  const double chance = k95 * std::sqrt(noise.unit * (noise.born + noise.gone));
  // Shared mappings and files are sampled as blocks, as large as their addresses; run files of before have none of
  // them.
  const double told = used.empty() ? by_system : by_allocator, mapped = process ? gain(process->mapped_at(rounds)) : 0;
  if (mapped > kTable.mapped && std::abs(by_samples - told - mapped) < std::abs(by_samples - told)) {
    std::vector<double> level = used.empty() ? own : used;
    if (!with_mapped) {
      division.add(std::move(level), AccountPart{Part::kInUse, used.empty() ? "in use, who holds it was not seen"
                                                                            : "in use, as allocators count"});
      return false;
    }
    const std::vector<double> beside = process->mapped_resident_at(rounds);
    for (size_t i = 0; i < level.size(); ++i) level[i] += beside[i];
    division.add(std::move(level), std::move(shares), used.empty() ? 1 : 0);
    return true;
  }
  // The allocators' own count is exact where it counts all; samples say what it is made of. Mappings that a library
  // made by itself only they see.
  if (!used.empty() && by_allocator > 0 &&
      std::abs(by_samples - by_allocator) <= chance + kTable.rounding * by_allocator) {
    division.add(used, std::move(shares));
  } else if (used.empty() && by_system > 0 && std::abs(by_samples - by_system) <= chance) {
    // No allocator was asked. Pages without a file are as many as the samples say, give or take what these are off by.
    division.add(own, std::move(shares), 1);
  } else {
    division.add(sampled, std::move(shares), 1);
    if (!used.empty() && by_allocator > by_samples) {
      std::vector<double> beyond = used;
      for (size_t i = 0; i < beyond.size(); ++i) beyond[i] -= sampled[i];
      division.add(std::move(beyond), AccountPart{Part::kInUse, "in use beyond that, as allocators count"}, -1);
    }
  }
  return false;
}

std::optional<Account> account(const Case& c) {
  const Periods& p = c.periods;
  if (p.size() < 3 || p.rss.size() < 3) return {};
  const Rounds rounds = rounds_of(p);
  if (rounds.size() < 2) return {};
  Division division(rounds, levels_at(rounds, timed(p, p.rss)));
  const auto own = std::ranges::find(c.evidence.processes, c.evidence.process, &SeenProcess::row);
  if (own == c.evidence.processes.end() || own->row == 0) {
    add_inside(c, rounds, nullptr, false, division);
  } else {
    const ProcessLevels levels(*own);
    const bool mapped = add_inside(c, rounds, &levels, true, division);
    levels.add_stacks(rounds, division);
    levels.add_files(rounds, division, !mapped);
    if (!mapped) levels.add_shared(rounds, division);
  }
  Account a = division.take();
  a.process = c.evidence.process;
  return a;
}

}  // namespace millpond::verdict
