// Statistics that one strange epoch cannot turn: medians, slopes by Theil and Sen, and tests for the shapes memory
// takes over time.
//
//   leak      /      cache   ,----    reserve  |-----    sawtooth  /|/|/|
//            /              /                  |
// Pure functions over pairs (x, y); x need not be evenly spaced and must not fall.
#pragma once
#include <cmath>
#include <span>
#include <vector>

#include "verdict/table.h"
#include "verdict/verdict.h"

namespace millpond::verdict {

double median(std::vector<double> values);  // 0 of nothing

/// Deviations of a normal distribution in one median absolute deviation, and those to either side that 90 and 95 % lie
/// within.
inline constexpr double kDeviation = 1.4826, k90 = 1.645, k95 = 1.96;

/// How far off a sum or a difference is of two values that are off by a and by b, independently. Not std::hypot: the
/// linker would bind it to glibc 2.35, and the wheel promises 2.34.
inline double off_together(double a, double b) { return std::sqrt(a * a + b * b); }

/// Each the median of itself and its neighbours: the way back from a moment's dip is no step. The first and the last
/// stay.
std::vector<double> without_spikes(std::span<const double> y);

struct Slope {
  double value = 0;
  Interval range;  // 90 %, by the distribution of Kendall's tau: no assumption on the noise
  bool vague() const { return range.high - range.low > kTable.vague * std::abs(value); }
};

/// The median of the slopes of all pairs. Fewer than two different x: zero.
Slope theil_sen(std::span<const double> x, std::span<const double> y);

/// The median of slopes of pairs, with the range that their rank correlation has by chance; `variance`: of Kendall's S.
Slope middle_of(std::vector<double> slopes, double variance);

/// By least squares: exact for stairs too, where the median of pairs is not. Nothing strange may be among them.
struct Line {
  double a = 0, b = 0, explained = 0;  // a + b x; the share of the variance that it explains
  double at(double x) const { return a + b * x; }
};
Line least_squares(std::span<const double> x, std::span<const double> y);
double slope_of(std::span<const double> x, std::span<const double> y);

/// Share of the variance of y that a straight line in x explains, 0..1. A constant y: 0.
double straightness(std::span<const double> x, std::span<const double> y);

/// At even distances; between two that were seen on a line: only what is evenly spaced can be compared round by round.
struct Even {
  std::vector<double> x, y;
};
Even evenly(std::span<const double> x, std::span<const double> y);

/// The highest rise from one value to the next; 0: it never rises.
double biggest_step(std::span<const double> y);

/// How well a count explains growth. Both run with the same marks.
struct UnitFit {
  double straight = 0;  // share of variance
  bool varies = false;  // the count is not just a multiple of the marks
};
UnitFit fit_unit(std::span<const double> count, std::span<const double> y);

/// A shape that comes again every so many of x, found by autocorrelation of y less its straight line.
struct Rhythm {
  double every = 0;     // 0: none, or fewer than four times
  double strength = 0;  // correlation with itself one round later, 0.6..1
};
Rhythm rhythm(std::span<const double> x, std::span<const double> y);

}  // namespace millpond::verdict
