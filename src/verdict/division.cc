#include "verdict/division.h"

#include <algorithm>
#include <cmath>

#include "verdict/sites.h"

namespace millpond::verdict {
namespace {

constexpr uint64_t kResamplingSeed =
    15;  // any will do: it is fixed so that a run has the same intervals whenever it is read

bool is_one_part(const AccountPart& a, const AccountPart& b) {
  return a.kind == b.kind && a.name == b.name && a.chain == b.chain && a.born.has_value() == b.born.has_value() &&
         (!a.born || same_line(*a.born, *b.born));
}

}  // namespace

std::vector<double> levels_at(const Rounds& rounds, const TimeSeries& series) {
  std::vector<double> y;
  if (series.empty()) return y;
  size_t next = 0;
  for (const double t : rounds.t) {
    if (t < rounds.begin || t > rounds.end) {
      y.push_back(0);
      continue;
    }
    while (next < series.size() && series[next].first <= t) ++next;
    if (next == 0 || next == series.size()) {
      y.push_back(series[next == 0 ? 0 : next - 1].second);
      continue;
    }
    const auto& [t0, y0] = series[next - 1];
    const auto& [t1, y1] = series[next];
    y.push_back(t1 > t0 ? y0 + (y1 - y0) * (t - t0) / (t1 - t0) : y1);
  }
  return y;
}

void Division::add(std::vector<double> level, std::vector<Share> shares, double noise) {
  if (level.size() != rounds_.size() || shares.empty()) return;
  for (Share& s : shares) terms_.push_back({std::move(s), levels_.size()});
  levels_.push_back({std::move(level), noise});
}

Account Division::take() {
  Account a;
  a.rounds = rounds_.length(), a.unit = rounds_.unit, a.from = rounds_.t.front(), a.to = rounds_.t.back();
  std::vector<std::vector<double>> all;
  for (Level& l : levels_) all.push_back(std::move(l.y));
  all.push_back(std::move(total_));
  std::vector<double> growth;
  for (const std::vector<double>& y : all) growth.push_back(grown(rounds_, y));
  Random random(kResamplingSeed);
  const std::vector<std::vector<double>> errors = growth_errors(rounds_, all, random);
  a.growth = growth.back();
  for (size_t i = 0; i < rounds_.some(); ++i) a.level += all.back()[rounds_.size() - 1 - i] / double(rounds_.some());

  std::vector<size_t> part_of;  // of each term
  for (const Term& term : terms_) {
    const auto same =
        std::ranges::find_if(a.parts, [&](const AccountPart& p) { return is_one_part(p, term.share.part); });
    part_of.push_back(size_t(same - a.parts.begin()));
    if (same == a.parts.end()) a.parts.push_back(term.share.part), a.parts.back().bytes = 0;
    a.parts[part_of.back()].bytes += growth[term.level] * term.share.weight;
  }

  const size_t n = a.parts.size();
  std::vector<std::vector<double>> drawn(n + 2, std::vector<double>(kResamplings, 0.0));  // parts, the rest, the whole
  for (size_t b = 0; b < kResamplings; ++b) {
    double sampled = 0;
    if (noise_.unit > 0)
      sampled =
          noise_.unit * (poisson(random, noise_.born / noise_.unit) - poisson(random, noise_.gone / noise_.unit)) -
          noise_.born + noise_.gone;
    std::vector<double> weight(terms_.size()), sum(levels_.size(), 0.0), meant(levels_.size(), 0.0);
    for (size_t i = 0; i < terms_.size(); ++i) {
      const Share& s = terms_[i].share;
      const double samples = s.unit > 0 ? std::abs(s.weight * growth[terms_[i].level]) / s.unit : 0;
      weight[i] = samples > 0 ? s.weight * poisson(random, samples) / samples : s.weight;
      sum[terms_[i].level] += weight[i], meant[terms_[i].level] += s.weight;
    }
    drawn[n + 1][b] = growth.back() + errors.back()[b];
    drawn[n][b] = drawn[n + 1][b];
    for (size_t i = 0; i < terms_.size(); ++i) {
      const size_t l = terms_[i].level;
      const double w = sum[l] > 0 && meant[l] > 0 ? weight[i] * meant[l] / sum[l] : terms_[i].share.weight;
      const double bytes = w * (growth[l] + errors[l][b] + levels_[l].noise * sampled);
      drawn[part_of[i]][b] += bytes, drawn[n][b] -= bytes;
    }
  }
  a.range = middle_95(drawn[n + 1]);
  for (size_t i = 0; i < n; ++i) a.parts[i].range = middle_95(drawn[i]);
  std::erase_if(a.parts, [](const AccountPart& p) { return std::abs(p.bytes) < 1 && p.error() < 1; });
  std::ranges::stable_sort(a.parts, std::ranges::greater{}, &AccountPart::bytes);
  double rest = a.growth;
  for (const AccountPart& p : a.parts) rest -= p.bytes;
  // What was asked for and not written yet takes no memory: allocators count it, the system does not.
  AccountPart last{rest < 0 ? AccountPart::Kind::kUntouched : AccountPart::Kind::kUnexplained,
                   rest < 0 ? "asked for and never written" : "not explained"};
  last.bytes = rest, last.range = middle_95(drawn[n]);
  a.parts.push_back(std::move(last));
  return a;
}

}  // namespace millpond::verdict
