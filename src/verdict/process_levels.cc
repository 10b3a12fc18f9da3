#include "verdict/process_levels.h"

#include <algorithm>
#include <cmath>

namespace millpond::verdict {
namespace {

using Part = AccountPart::Kind;

constexpr std::pair<const char*, const char*> kFileKinds[] = {{"library", "code of libraries"},
                                                              {"file", "memory-mapped files"}};
constexpr std::pair<const char*, const char*> kSharedKinds[] = {{"shared_memory", "shared memory"},
                                                                {"shared_anonymous", "shared mappings without a name"}};

constexpr const char* kMappedKinds[] = {"shared_memory", "shared_anonymous", "file"};

TimeSeries resident_of(const std::vector<Mapped>& mapped) {
  TimeSeries out;
  for (const Mapped& m : mapped) out.emplace_back(m.t, double(m.resident.value));
  return out;
}

double between(const TimeSeries& series, double t) {
  const std::vector<double> y = levels_at(Rounds{.t = {t}, .x = {0}}, series);
  return y.empty() ? 0 : y.front();
}

}  // namespace

ProcessLevels::ProcessLevels(const SeenProcess& process) : process_(process) {
  if (const auto found = process.spaces.find("shared"); found != process.spaces.end())
    for (const SeenProcess::Point& p : found->second)
      if (p.resident) shared.emplace_back(p.t, double(p.resident->value));
  for (const SeenProcess::Pages& p : process.pages) {
    const double all = double(p.resident.value), own = double(p.anonymous.value);
    resident.emplace_back(p.t, all), anonymous.emplace_back(p.t, own);
    files.emplace_back(p.t, std::max(0.0, all - own - between(shared, p.t)));
    if (p.private_dirty) private_dirty.emplace_back(p.t, double(p.private_dirty->value));
    if (p.pss) pss.emplace_back(p.t, double(p.pss->value));
  }
}

Rounds ProcessLevels::of(Rounds rounds) const {
  rounds.begin = process_.start;
  if (process_.end) rounds.end = *process_.end;
  return rounds;
}

double ProcessLevels::mapped_gain(const Rounds& rounds, const char* kind) const {
  const auto found = process_.mappings.find(kind);
  return found == process_.mappings.end() || found->second.size() < 2
             ? 0
             : grown(rounds, levels_at(rounds, resident_of(found->second)));
}

void ProcessLevels::add_kinds(const Rounds& rounds, const TimeSeries& series,
                              std::span<const std::pair<const char*, const char*>> kinds, AccountPart::Kind part,
                              const char* otherwise, Division& division) const {
  std::vector<double> level = levels_at(rounds, series);
  if (level.empty()) return;
  // Pages are counted often, mappings now and then: those say how what was counted divides.
  std::vector<Division::Share> shares;
  double sum = 0;
  for (const auto& [kind, name] : kinds)
    if (const double gain = mapped_gain(rounds, kind); gain > 0)
      shares.push_back({AccountPart{part, name}, gain, 0}), sum += gain;
  for (Division::Share& s : shares) s.weight /= sum;
  if (shares.empty()) shares.push_back({AccountPart{part, otherwise}, 1, 0});
  division.add(std::move(level), std::move(shares));
}

void ProcessLevels::add_stacks(const Rounds& rounds, Division& division) const {
  const auto found = process_.mappings.find("stack");
  if (found != process_.mappings.end() && found->second.size() > 1)
    division.add(levels_at(rounds, resident_of(found->second)), AccountPart{Part::kStacks, "stacks of threads"});
}
void ProcessLevels::add_files(const Rounds& rounds, Division& division, bool mapped_too) const {
  if (mapped_too) return add_kinds(rounds, files, kFileKinds, Part::kFiles, "files", division);
  std::vector<double> code = levels_at(rounds, files);
  const std::vector<double> mapped = sum_of_kinds(rounds, std::span(kMappedKinds).last(1), &Mapped::resident);
  for (size_t i = 0; i < code.size(); ++i) code[i] -= mapped[i];
  division.add(std::move(code), AccountPart{Part::kFiles, "code of libraries"});
}
void ProcessLevels::add_shared(const Rounds& rounds, Division& division) const {
  add_kinds(rounds, shared, kSharedKinds, Part::kShared, "shared mappings", division);
}

std::vector<double> ProcessLevels::own_at(const Rounds& rounds) const {
  std::vector<double> own = levels_at(rounds, anonymous);
  const auto found = process_.mappings.find("stack");
  if (found != process_.mappings.end() && found->second.size() > 1) {
    const std::vector<double> stacks = levels_at(rounds, resident_of(found->second));
    for (size_t i = 0; i < own.size(); ++i) own[i] -= stacks[i];
  }
  return own;
}

std::vector<double> ProcessLevels::sum_of_kinds(const Rounds& rounds, std::span<const char* const> kinds,
                                                Bytes Mapped::* what) const {
  std::vector<double> sum(rounds.size(), 0.0);
  for (const char* kind : kinds) {
    const auto found = process_.mappings.find(kind);
    if (found == process_.mappings.end()) continue;
    TimeSeries series;
    for (const Mapped& m : found->second) series.emplace_back(m.t, double((m.*what).value));
    const std::vector<double> level = levels_at(rounds, series);
    for (size_t i = 0; i < level.size(); ++i) sum[i] += level[i];
  }
  return sum;
}

std::vector<double> ProcessLevels::mapped_at(const Rounds& rounds) const {
  return sum_of_kinds(rounds, kMappedKinds, &Mapped::mapped);
}
std::vector<double> ProcessLevels::mapped_resident_at(const Rounds& rounds) const {
  return sum_of_kinds(rounds, kMappedKinds, &Mapped::resident);
}
std::vector<double> ProcessLevels::private_mapped_at(const Rounds& rounds) const {
  return sum_of_kinds(rounds, std::span(kMappedKinds).first(2), &Mapped::private_dirty);
}

void ProcessLevels::add_outside(const Rounds& rounds, Division& division) const {
  division.add(own_at(rounds), AccountPart{Part::kOutside, "heaps and other memory of its own, not seen from inside"});
}

Rounds rounds_of(const ProcessLevels& levels) {
  constexpr size_t kMostLooks = 512;
  Rounds rounds;
  rounds.unit = Unit::kSecond;
  if (levels.resident.size() < 4) return rounds;
  const double begin = levels.resident.front().first,
               warm = begin + kTable.warm_up * (levels.resident.back().first - begin);
  const size_t n = levels.resident.size(), stride = 1 + n / kMostLooks;
  for (size_t i = 0; i < n; ++i)
    if (const double t = levels.resident[i].first; t >= warm && (n - 1 - i) % stride == 0)
      rounds.t.push_back(t), rounds.x.push_back(t);
  return rounds;
}

}  // namespace millpond::verdict
