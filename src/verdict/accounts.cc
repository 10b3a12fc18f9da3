#include <algorithm>
#include <map>
#include <memory>

#include "base/format.h"
#include "verdict/account.h"
#include "verdict/process_levels.h"

namespace millpond::verdict {
namespace {

using Part = AccountPart::Kind;

constexpr size_t kMostAccounted = 64;  // processes
constexpr size_t kFewestRounds = 4;    // after warm-up: of fewer no spread is known

/// A process with all that is known of it.
struct Member {
  std::unique_ptr<ProcessLevels> levels;
  const Evidence* evidence = nullptr;  // null: not seen from inside
  std::unique_ptr<Case> inside;

  TimeSeries resident() const {
    TimeSeries marks;
    if (inside)
      for (const Mark* m : inside->periods.marks)
        if (m->rss) marks.emplace_back(m->t, double(m->rss->value));
    return marks.size() >= kFewestRounds ? marks : levels->resident;
  }
  /// Its own, or those of the process whose loop is compared while it ran, or looks by the clock.
  Rounds rounds(const Rounds& main) const {
    if (inside && inside->periods.size() > kFewestRounds)
      if (Rounds own = rounds_of(inside->periods); own.size() >= kFewestRounds) return own;
    Rounds meanwhile;
    meanwhile.unit = main.unit;
    for (size_t i = 0; i < main.size(); ++i)
      if (levels->ran_at(main.t[i])) meanwhile.t.push_back(main.t[i]), meanwhile.x.push_back(main.x[i]);
    return meanwhile.size() >= kFewestRounds ? meanwhile : rounds_of(*levels);
  }
};

void add_own(const Member& m, const Rounds& rounds, Division& division) {
  if (m.inside && m.inside->periods.size() >= kFewestRounds)
    add_inside(*m.inside, rounds, m.levels.get(), false, division);
  else
    m.levels->add_outside(rounds, division);
  m.levels->add_stacks(rounds, division);
}

std::vector<double> less(std::vector<double> from, const std::vector<double>& what) {
  for (size_t i = 0; i < from.size() && i < what.size(); ++i) from[i] -= what[i];
  return from;
}
void plus(std::vector<double>& to, const std::vector<double>& what) {
  for (size_t i = 0; i < to.size() && i < what.size(); ++i) to[i] += what[i];
}

Account named(Account a, const Member& m, std::string space) {
  a.process = m.levels->process().row;
  a.space = std::move(space);
  return a;
}

/// Of a device: what the frameworks' pools have handed out and what they keep free, where they told; the rest is the
/// context's and other libraries'.
Account of_device(const Member& m, const Rounds& rounds, const std::string& space,
                  const std::vector<SeenProcess::Point>& points) {
  TimeSeries all;
  for (const SeenProcess::Point& p : points)
    if (p.resident) all.emplace_back(p.t, double(p.resident->value));
  Division division(rounds, levels_at(rounds, all));
  bool told = false;
  for (const Pool& pool : m.evidence ? m.evidence->pools : std::vector<Pool>{}) {
    if (pool.space != space || pool.points.empty()) continue;
    TimeSeries in_use, kept;
    for (const Pool::Point& p : pool.points) {
      in_use.emplace_back(p.t, double(p.in_use.value));
      if (p.reserved) kept.emplace_back(p.t, double((*p.reserved - p.in_use).value));
    }
    division.add(levels_at(rounds, in_use), AccountPart{Part::kGpu, "in use in the framework's pool"});
    division.add(levels_at(rounds, kept), AccountPart{Part::kFree, "kept free by the framework's pool"});
    told = true;
  }
  if (!told) division.add(levels_at(rounds, all), AccountPart{Part::kGpu, "on the device, as the driver tells"});
  return division.take();
}

void add_spaces(const Member& m, const Rounds& main, std::vector<Account>& list) {
  const Rounds rounds = m.rounds(main);
  const TimeSeries resident = m.resident();
  if (rounds.size() < 2 || resident.empty()) return;
  const std::vector<double> shared = levels_at(rounds, m.levels->shared);
  Division host(rounds, less(levels_at(rounds, resident), shared));
  add_own(m, rounds, host);
  m.levels->add_files(rounds, host);
  list.push_back(named(host.take(), m, "host"));
  if (!shared.empty() && std::ranges::max(shared) > 0) {
    Division division(rounds, shared);
    m.levels->add_shared(rounds, division);
    list.push_back(named(division.take(), m, "shared"));
  }
  for (const auto& [space, points] : m.levels->process().spaces)
    if (space.starts_with("gpu:") && !points.empty())
      list.push_back(named(of_device(m, rounds, space, points), m, space));
}

/// The private pages of each process and each shared page once. Processes that began or ended meanwhile are a part
/// each: what they have in common with others is not told apart.
std::optional<Account> of_tree(const Evidence& main, const std::vector<Member>& members, const Rounds& rounds) {
  if (rounds.size() < kFewestRounds) return {};
  std::vector<double> total(rounds.size(), 0.0), once = total, copied = total, mapped = total, meanwhile = total;
  std::vector<const Member*> steady;
  size_t seen = 0;
  for (const Member& m : members) {
    const std::vector<double> pss = levels_at(m.levels->of(rounds), m.levels->pss);
    if (pss.empty() || std::ranges::max(pss) <= 0) continue;
    ++seen;
    plus(total, pss);
    if (!m.levels->ran_at(rounds.t.front()) || !m.levels->ran_at(rounds.t.back())) {
      plus(meanwhile, pss);
      continue;
    }
    steady.push_back(&m);
    const std::vector<double> own = levels_at(rounds, m.levels->private_dirty);
    plus(once, less(pss, own));
    // What is private beyond what has no file behind it: shared mappings that no other process has, and pages that were
    // a parent's.
    const std::vector<double> lone = m.levels->private_mapped_at(rounds);
    plus(mapped, lone);
    plus(copied, less(less(own, levels_at(rounds, m.levels->anonymous)), lone));
  }
  TimeSeries lying;
  double most = 0;
  for (const auto& [t, bytes] : main.loose_files)
    lying.emplace_back(t, double(bytes.value)), most = std::max(most, double(bytes.value));
  const std::vector<double> files = most < kTable.mapped ? std::vector<double>() : levels_at(rounds, lying);
  if (seen < 2 && files.empty()) return {};
  const bool alone = members.size() == 1;  // its pages are all its own: what it shares with others is not asked for
  if (alone) total = levels_at(rounds, members.front().resident()), steady = {&members.front()};
  if (total.empty() || (seen == 0 && !alone)) return {};
  plus(total, files);
  Division division(rounds, total);
  for (const Member* m : steady) {
    add_own(*m, rounds, division);
    if (alone) m->levels->add_files(rounds, division), m->levels->add_shared(rounds, division);
  }
  if (!alone) {
    division.add(std::move(copied), AccountPart{Part::kCopied, "pages of a parent that were written to"});
    division.add(std::move(mapped), AccountPart{Part::kShared, "shared mappings that one process alone has"});
    division.add(std::move(once), AccountPart{Part::kShared, "files and memory that processes share, once"});
    division.add(std::move(meanwhile), AccountPart{Part::kOutside, "processes that began or ended meanwhile"});
  }
  if (!files.empty()) division.add(files, AccountPart{Part::kShared, "files in memory that no process has mapped"});
  Account a = division.take();
  a.tree = true;
  return a;
}

}  // namespace

std::vector<Account> accounts(const Evidence& main, std::span<const Evidence> children) {
  std::vector<Member> members;
  const auto began = std::ranges::find(main.processes, main.process, &SeenProcess::row);
  for (const SeenProcess& p : main.processes) {
    if (p.row == 0) continue;
    Member m;
    m.levels = std::make_unique<ProcessLevels>(p);
    const auto child = std::ranges::find(children, p.row, &Evidence::process);
    m.evidence = p.row == main.process ? &main : child != children.end() ? &*child : nullptr;
    // Those that only started it, a shell or the shim that chooses a Python, are no part of the story.
    const bool launcher = p.row != main.process && began != main.processes.end() && p.end && *p.end <= began->start;
    if (launcher || (m.levels->resident.empty() && !m.evidence)) continue;
    members.push_back(std::move(m));
  }
  std::ranges::stable_sort(members, std::ranges::greater{}, [&](const Member& m) {
    double most = 0;
    for (const auto& [t, bytes] : m.levels->resident) most = std::max(most, bytes);
    return std::pair(m.evidence == &main, most);
  });
  if (members.size() > kMostAccounted) members.resize(kMostAccounted);
  for (Member& m : members)
    if (m.evidence) m.inside = std::make_unique<Case>(*m.evidence);
  std::vector<Account> list;
  if (members.empty()) return list;
  const Rounds rounds = members.front().rounds({});
  if (std::optional<Account> tree = of_tree(main, members, rounds)) list.push_back(std::move(*tree));
  for (const Member& m : members) add_spaces(m, rounds, list);
  return list;
}

}  // namespace millpond::verdict
