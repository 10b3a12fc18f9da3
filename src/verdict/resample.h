// How well growth between like rounds is known, by resampling: of rounds in blocks, because neighbours are alike, and
// of sampled blocks, whose number is Poisson's. Pure; the seed is fixed, so the same run has the same intervals.
//
// Growth is the mean of the last rounds less the mean of the first ones. That is linear: where levels add up, so do
// their growths, exactly.
#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "verdict/verdict.h"

namespace millpond::verdict {

/// A number of Poisson's, the same on every machine, which those of the standard library are not.
double poisson(Random& random, double mean);

/// The rounds that are compared, warm-up left out.
struct Rounds {
  std::vector<double> t, x;  // seconds of the run; rounds, or seconds where the clock tells them
  Unit unit = Unit::kRun;
  double begin = -HUGE_VAL, end = HUGE_VAL;  // of a process that is looked at: before and after it held nothing
  size_t size() const { return t.size(); }
  size_t some() const;  // so many of each end are averaged
  /// From the middle of the first ones to the middle of the last ones.
  double length() const;
};

/// y has a value for each round.
double grown(const Rounds& rounds, std::span<const double> y);

constexpr size_t kResamplings = 300;

/// Errors of the growth of each level, kResamplings each; resampling i draws the same rounds for all levels, so what
/// cancels in a round cancels here.
std::vector<std::vector<double>> growth_errors(const Rounds& rounds, std::span<const std::vector<double>> levels,
                                               Random& random);

/// What holds 95 % of the values. They are put in order.
Interval middle_95(std::vector<double>& values);

/// How much a sum of sampled blocks of this size varies for each of its bytes: a block is taken with probability 1 -
/// exp(-size / interval) and stands for its share. Next to nothing for large blocks, and `interval` for small ones and
/// those of unknown size.
double sampling_unit(double block, double interval);

}  // namespace millpond::verdict
