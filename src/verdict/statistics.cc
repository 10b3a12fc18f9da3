#include "verdict/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace millpond::verdict {
double median(std::vector<double> v) {
  if (v.empty()) return 0;
  const auto middle = v.begin() + long(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

std::vector<double> without_spikes(std::span<const double> y) {
  std::vector<double> level(y.begin(), y.end());
  for (size_t i = 1; i + 1 < y.size(); ++i)
    level[i] = std::clamp(y[i], std::min(y[i - 1], y[i + 1]), std::max(y[i - 1], y[i + 1]));
  return level;
}

Slope theil_sen(std::span<const double> x, std::span<const double> y) {
  std::vector<double> slopes;
  // A run of 10,000 epochs has 50 million pairs: thin it out, the ends kept.
  const size_t stride = std::max<size_t>(1, x.size() / 400);
  std::vector<size_t> at;
  for (size_t i = 0; i < x.size(); i += stride) at.push_back(i);
  // Where four of five values are the same, so are far more than half of the pairs, and every rank asked for below is
  // 0. Most places that ever allocated are so, and there can be thousands of them.
  if (at.size() >= 100) {
    const double usual = y[at[at.size() / 2]];
    size_t other = 0;
    for (const size_t i : at) other += y[i] != usual;
    if (5 * other <= at.size()) return {};
  }
  for (size_t i = 0; i < at.size(); ++i)
    for (size_t j = i + 1; j < at.size(); ++j)
      if (x[at[j]] > x[at[i]]) slopes.push_back((y[at[j]] - y[at[i]]) / (x[at[j]] - x[at[i]]));
  if (slopes.empty()) return {};
  const double n = double(at.size());
  return middle_of(std::move(slopes), n * (n - 1) * (2 * n + 5) / 18);
}

Slope middle_of(std::vector<double> slopes, double variance) {
  const double pairs = double(slopes.size()), spread = k90 * std::sqrt(variance);
  // Three of 80,000 are wanted: choosing them is five times as fast as sorting all, and this is done for every place
  // that allocates.
  const auto rank = [&](double r) {
    const auto at_rank = slopes.begin() + std::ptrdiff_t(std::clamp(r, 0.0, pairs - 1));
    std::ranges::nth_element(slopes, at_rank);
    return *at_rank;
  };
  const size_t half = slopes.size() / 2;
  double middle = rank(double(half));
  if (slopes.size() % 2 == 0)
    middle = (middle + *std::max_element(slopes.begin(), slopes.begin() + std::ptrdiff_t(half))) / 2;
  return {middle, {rank(std::floor((pairs - spread) / 2) - 1), rank(std::ceil((pairs + spread) / 2))}};
}

Line least_squares(std::span<const double> x, std::span<const double> y) {
  const double n = double(x.size());
  if (n < 1) return {};
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n, my = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mx) * (x[i] - mx);
    xy += (x[i] - mx) * (y[i] - my);
    yy += (y[i] - my) * (y[i] - my);
  }
  if (xx <= 0) return {my, 0, 0};
  const double b = xy / xx;
  return {my - b * mx, b, yy > 0 ? xy * xy / (xx * yy) : 0};
}

Even evenly(std::span<const double> x, std::span<const double> y) {
  constexpr size_t kMost = 1024;
  std::vector<double> gaps;
  for (size_t i = 1; i < x.size(); ++i) gaps.push_back(x[i] - x[i - 1]);
  const double length = x.back() - x.front(), step = std::max(median(std::move(gaps)), length / kMost);
  if (!(step > 0)) return {{x.begin(), x.end()}, {y.begin(), y.end()}};
  Even even;
  const size_t steps = size_t(std::lround(length / step));
  for (size_t i = 0, next = 1; i <= steps; ++i) {
    const double at = i == steps ? x.back() : x.front() + double(i) * step;
    while (next + 1 < x.size() && x[next] < at) ++next;
    const double from = x[next - 1], share = x[next] > from ? std::clamp((at - from) / (x[next] - from), 0.0, 1.0) : 1;
    even.x.push_back(at), even.y.push_back(y[next - 1] + share * (y[next] - y[next - 1]));
  }
  return even;
}

double slope_of(std::span<const double> x, std::span<const double> y) { return least_squares(x, y).b; }

double straightness(std::span<const double> x, std::span<const double> y) { return least_squares(x, y).explained; }

double biggest_step(std::span<const double> y) {
  double most = 0;
  for (size_t i = 1; i < y.size(); ++i) most = std::max(most, y[i] - y[i - 1]);
  return most;
}

UnitFit fit_unit(std::span<const double> count, std::span<const double> y) {
  UnitFit fit;
  if (count.size() < 4 || count.back() <= count.front()) return fit;
  fit.straight = straightness(count, y);
  std::vector<double> gains;
  for (size_t i = 1; i < count.size(); ++i) gains.push_back(count[i] - count[i - 1]);
  const double usual = median(gains);
  for (double g : gains) fit.varies |= std::abs(g - usual) > kTable.varies * std::max(1.0, usual);
  return fit;
}

Rhythm rhythm(std::span<const double> x, std::span<const double> y) {
  constexpr double kEnough = 0.6, kApart = 0.1, kAlmost = 0.9;
  if (x.size() < 2) return {};
  Even even = evenly(x, y);
  const size_t n = even.y.size();
  if (n < 32) return {};
  const double step = even.x[1] - even.x[0];
  const Line trend = least_squares(even.x, even.y);
  for (size_t i = 0; i < n; ++i) even.y[i] -= trend.at(even.x[i]);
  std::vector<double> r;  // by lag
  for (size_t lag = 0; lag <= n / 4 + 1; ++lag) {
    double sum = 0;
    for (size_t i = lag; i < n; ++i) sum += even.y[i] * even.y[i - lag];
    r.push_back(sum / double(n - lag));
    if (r[0] <= 0) return {};
  }
  for (double& value : std::span(r).subspan(1)) value /= r[0];
  // Near itself everything is alike: a round begins where that has ended, and it is the first of equal ones.
  size_t lag = 1;
  while (lag < n / 4 && r[lag] > kApart) ++lag;
  const auto rest = std::span(r).subspan(lag, n / 4 + 1 - lag);
  const double highest = *std::ranges::max_element(rest);
  for (lag = std::max<size_t>(lag, 3); lag <= n / 4; ++lag) {
    if (r[lag] < kEnough || r[lag] < kAlmost * highest || r[lag] < r[lag - 1] || r[lag] < r[lag + 1]) continue;
    const double bend = r[lag - 1] - 2 * r[lag] + r[lag + 1];
    const double between = bend < 0 ? 0.5 * (r[lag - 1] - r[lag + 1]) / bend : 0;  // the top of the parabola
    return {(double(lag) + between) * step, std::min(1.0, r[lag])};
  }
  return {};
}

}  // namespace millpond::verdict
