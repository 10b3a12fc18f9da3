#include "verdict/resample.h"

#include <algorithm>
#include <cmath>

#include "verdict/statistics.h"

namespace millpond::verdict {
namespace {

/// The numbers of this file. How often the intervals hold the truth is measured in tests/verdict/account_test.cc on
/// levels of known truth.
constexpr size_t kMostAveraged = 5;  // rounds at each end: more would tell of a shorter time
constexpr size_t kBendFrom = 12;     // rounds: with fewer a bend of the line would follow the noise
constexpr double kBendWorth =
    6;  // F of two lines against one, of a bend that was sought: noise alone has more in one case in twenty
constexpr double kLineTakes = 2,
                 kBendTakes = 5;    // degrees of freedom that the fitted line takes, its sought bend included
constexpr double kLeastLeft = 0.2;  // of the variance of neighbours' means: below it a factor would be a guess

/// Student's t that holds 95 % against the normal distribution's: few residuals say little of their spread.
double student(double freedom) {
  constexpr double z = k95;
  const double z3 = z * z * z, z5 = z3 * z * z;
  return 1 + ((z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom)) / z;
}

double squares(std::span<const double> x, std::span<const double> y, const Line& line) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double off = y[i] - line.at(x[i]);
    sum += off * off;
  }
  return sum;
}

/// What is left of a level beside what it does: one straight line, or two where growth began or ended on the way.
/// `block`: so many neighbours are drawn together.
std::vector<double> residuals(std::span<const double> x, std::span<const double> y, size_t block) {
  const size_t n = x.size();
  size_t bend = n;
  if (n >= kBendFrom) {
    const double one = squares(x, y, least_squares(x, y));
    double least = one;
    const size_t step = 1 + n / 64;
    for (size_t i = 4; i + 4 <= n; i += step) {
      const auto of = [&](size_t from, size_t count) {
        return squares(x.subspan(from, count), y.subspan(from, count),
                       least_squares(x.subspan(from, count), y.subspan(from, count)));
      };
      if (const double both = of(0, i) + of(i, n - i); both < least) least = both, bend = i;
    }
    if (one - least <= kBendWorth * (kBendTakes - kLineTakes) / (double(n) - kBendTakes) * least) bend = n;
  }
  // A line that is fitted to them takes a part of what the mean of some neighbours varies by: the longer they are, the
  // more.
  const double takes = bend < n ? kBendTakes : kLineTakes, freedom = std::max(1.0, double(n) - takes);
  const double wider = student(freedom) / std::sqrt(std::max(kLeastLeft, 1 - takes * double(block) / double(n)));
  std::vector<double> off(n);
  const auto fill = [&](size_t from, size_t to) {
    if (from >= to) return;
    const Line line = least_squares(x.subspan(from, to - from), y.subspan(from, to - from));
    for (size_t i = from; i < to; ++i) off[i] = wider * (y[i] - line.at(x[i]));
  };
  fill(0, bend), fill(bend, n);
  return off;
}

}  // namespace

double poisson(Random& random, double mean) {
  constexpr double kMany = 30;  // from here on the normal distribution is near enough
  if (!(mean > 0)) return 0;
  if (mean > kMany) return std::max(0.0, std::round(mean + std::sqrt(mean) * random.normal()));
  double count = 0;
  for (double left = std::exp(-mean), product = random.uniform(); product > left; product *= random.uniform()) ++count;
  return count;
}

size_t Rounds::some() const { return std::clamp<size_t>(size() / 4, 1, kMostAveraged); }

double Rounds::length() const { return size() < 2 ? 0 : grown(*this, x); }

double grown(const Rounds& rounds, std::span<const double> y) {
  const size_t n = rounds.size(), some = rounds.some();
  double sum = 0;
  for (size_t i = 0; i < some && some < n; ++i) sum += y[n - 1 - i] - y[i];
  return sum / double(some);
}

std::vector<std::vector<double>> growth_errors(const Rounds& rounds, std::span<const std::vector<double>> levels,
                                               Random& random) {
  const size_t n = rounds.size();
  std::vector<std::vector<double>> left, errors(levels.size(), std::vector<double>(kResamplings));
  // As long as what is averaged, so that rounds which are alike stay together in it.
  const size_t some = rounds.some(), block = std::max<size_t>(some, size_t(std::lround(std::cbrt(double(n)))));
  for (const std::vector<double>& y : levels) left.push_back(residuals(rounds.x, y, block));
  std::vector<size_t> drawn(n);
  for (size_t b = 0; b < kResamplings; ++b) {
    for (size_t i = 0; i < n;) {
      const size_t from = random.below(n);  // in a circle: every round as often as any other
      for (size_t k = 0; k < block && i < n; ++k) drawn[i++] = (from + k) % n;
    }
    for (size_t l = 0; l < levels.size(); ++l) {
      double sum = 0;
      for (size_t i = 0; i < some && some < n; ++i) sum += left[l][drawn[n - 1 - i]] - left[l][drawn[i]];
      errors[l][b] = sum / double(some);
    }
  }
  return errors;
}

Interval middle_95(std::vector<double>& values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto at = [&](double share) { return values[size_t(std::lround(share * double(values.size() - 1)))]; };
  return {at(0.025), at(0.975)};
}

double sampling_unit(double block, double interval) {
  if (interval <= 0 || block <= 0) return std::max(0.0, interval);
  const double ratio = block / interval;
  return ratio > 30 ? 0 : block / std::expm1(ratio);
}

}  // namespace millpond::verdict
