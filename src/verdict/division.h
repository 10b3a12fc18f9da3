// Division: a level of memory at the rounds, divided into parts that each have a level of their own, or a share of one.
// Adds up by construction: what is left is "not explained", or, where the parts are more than there is, "asked for and
// never written".
#pragma once
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "verdict/account.h"
#include "verdict/resample.h"

namespace millpond::verdict {

/// (t, bytes), by time.
using TimeSeries = std::vector<std::pair<double, double>>;

/// At each round; between two points on a line, before the first and after the last like these; 0 while the process did
/// not run. Nothing of an empty series.
std::vector<double> levels_at(const Rounds& rounds, const TimeSeries& series);

/// Where sampled blocks were born since the first rounds, and where such of before were freed: what a sum of them may
/// be off by.
struct SampledNoise {
  double born = 0, gone = 0;  // bytes
  double unit = 0;            // bytes that one sample stands for, on average
};

class Division {
 public:
  Division(const Rounds& rounds, std::vector<double> total) : rounds_(rounds), total_(std::move(total)) {}

  struct Share {
    AccountPart part;
    double weight = 1;  // of the level
    double unit = 0;    // bytes that one sample of it stands for; 0: it is exact
  };
  /// A level of its own with its shares, whose weights add up to 1. `noise`: how often the noise of sampled blocks is
  /// in it (1, 0, -1).
  void add(std::vector<double> level, std::vector<Share> shares, double noise = 0);
  void add(std::vector<double> level, AccountPart part, double noise = 0) {
    add(std::move(level), {Share{std::move(part), 1, 0}}, noise);
  }
  void set_noise(const SampledNoise& noise) { noise_ = noise; }

  /// Parts of one kind with the same name and birth line are one.
  Account take();

 private:
  struct Level {
    std::vector<double> y;
    double noise;
  };
  struct Term {
    Share share;
    size_t level;
  };
  const Rounds& rounds_;
  std::vector<double> total_;
  std::vector<Level> levels_;
  std::vector<Term> terms_;
  SampledNoise noise_;
};

}  // namespace millpond::verdict
