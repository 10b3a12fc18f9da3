#include "verdict/course.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <vector>

// Series of known truth at random: how often each is told as what it is. The bars are what kTable reaches less three
// standard deviations of so many programs.
namespace millpond::verdict {
namespace {

constexpr double kMegabyte = 1e6;

struct Made {
  std::vector<double> x, y;
  double kept = 0;  // bytes that came and stayed
};

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  Made leak() {
    begin();
    const size_t start = size_t(uniform(0, std::max<double>(1, double(n_) - 8)));
    const int kind = int(uniform(0, 3));
    for (size_t i = start; i < n_; ++i)
      gains_[i] = step_ * (kind == 0 ? 1 : kind == 1 ? lognormal(0.5) : poisson(3) / 3);
    return made(std::accumulate(gains_.begin(), gains_.end(), 0.0));
  }
  Made stopped() {
    begin();
    const size_t stop = size_t(uniform(2, std::max<double>(3, double(n_) - 6))),
                 start = size_t(uniform(0, double(stop) - 1));
    for (size_t i = start; i < stop; ++i) gains_[i] = step_ * lognormal(0.3);
    return made(std::accumulate(gains_.begin(), gains_.end(), 0.0));
  }
  Made walk() {
    begin();
    for (double& g : gains_) g = step_ * normal();
    return made(100 * kMegabyte);
  }
  Made saw() {
    begin();
    const double period = uniform(3, std::max(4.0, double(n_) / 2)), from = uniform(0, period);
    double before = 0;
    for (size_t i = 0; i < n_; ++i) {
      const double now = step_ * std::fmod(double(i) + from, period);
      gains_[i] = now - before, before = now;
    }
    return made(100 * kMegabyte);
  }
  Made flat() {
    begin();
    return made(0);
  }

 private:
  void begin() {
    n_ = size_t(std::exp(uniform(std::log(12), std::log(200))));
    step_ = kMegabyte * std::exp(uniform(std::log(0.05), std::log(20)));
    gains_.assign(n_, 0);
  }
  Made made(double kept) {
    constexpr double kNoises[] = {0, 0.02, 0.3, 2};
    const double noise = kMegabyte * kNoises[size_t(uniform(0, 4))];
    const int kind = int(uniform(0, 3));
    Made m{{}, {}, kept};
    double level = 300 * kMegabyte;
    for (size_t i = 0; i < n_; ++i) {
      level += gains_[i];
      const double off = kind == 1   ? (uniform(0, 1) < 0.2 ? -5 * noise * std::log(uniform(1e-9, 1)) : 0)
                         : kind == 2 ? noise * normal()
                                     : 0;
      m.x.push_back(double(i)), m.y.push_back(level + off);
    }
    return m;
  }
  double uniform(double from, double to) { return std::uniform_real_distribution(from, to)(random_); }
  double normal() { return std::normal_distribution()(random_); }
  double lognormal(double s) { return std::lognormal_distribution(0.0, s)(random_); }
  double poisson(double mean) { return double(std::poisson_distribution<int>(mean)(random_)); }

  std::mt19937 random_;
  size_t n_ = 0;
  double step_ = 0;
  std::vector<double> gains_;
};

constexpr double kGrain = 0.15 * kMegabyte, kWorth = 5 * kMegabyte;
constexpr int kPrograms = 1000;

/// Shares of what is worth naming, by what they were told as.
std::map<Move, double> told(Made (Maker::*make)(), unsigned seed, double worth) {
  Maker maker(seed);
  std::map<Move, double> shares;
  int all = 0;
  for (int i = 0; i < kPrograms; ++i) {
    const Made m = (maker.*make)();
    if (m.kept < worth) continue;
    ++all;
    ++shares[course(m.x, m.y, kGrain).move];
  }
  for (auto& [move, share] : shares) {
    share /= all;
    MESSAGE(std::string(to_string(move)), ": ", share);
  }
  return shares;
}

TEST_CASE("a leak of any start, size and noise grows until the end") {
  std::map<Move, double> t = told(&Maker::leak, 11, kWorth);
  CHECK(t[Move::kGrows] > 0.91);
  CHECK(t[Move::kStopped] < 0.05);
}

TEST_CASE("what stopped six rounds before the end or earlier has stopped") {
  std::map<Move, double> t = told(&Maker::stopped, 12, kWorth);
  CHECK(t[Move::kStopped] > 0.95);
  CHECK(t[Move::kGrows] < 0.015);
}

TEST_CASE("walks at random and saw-teeth do not grow") {
  CHECK(told(&Maker::walk, 13, kWorth)[Move::kGrows] < 0.07);
  CHECK(told(&Maker::saw, 14, kWorth)[Move::kGrows] < 0.02);
}

TEST_CASE("noise alone is flat") { CHECK(told(&Maker::flat, 15, 0)[Move::kFlat] > 0.96); }

TEST_CASE("the slope is that of the rise, not of the level before it") {
  std::vector<double> x, y;
  for (int i = 0; i < 40; ++i) x.push_back(i), y.push_back(i < 20 ? 1e8 : 1e8 + 2e6 * (i - 20));
  const Course c = course(x, y, kGrain);
  CHECK(c.move == Move::kGrows);
  CHECK(c.onset == doctest::Approx(20).epsilon(0.06));
  CHECK(c.slope.value == doctest::Approx(2e6).epsilon(0.03));
}

TEST_CASE("stairs go on while no pause is longer than those before") {
  std::vector<double> x, y;
  for (int i = 0; i < 60; ++i) x.push_back(i), y.push_back(1e8 + 8e6 * (i / 9));
  CHECK(course(x, y, kGrain).move == Move::kGrows);
  for (int i = 60; i < 80; ++i) x.push_back(i), y.push_back(y.back());
  CHECK(course(x, y, kGrain).move == Move::kStopped);
}

TEST_CASE("one step is over when two rounds have brought nothing since, and may be the beginning of a rise before") {
  std::vector<double> x, y;
  for (int i = 0; i < 20; ++i) x.push_back(i), y.push_back(20 * kMegabyte + (i >= 17 ? 7 * kMegabyte : 0));
  CHECK(course(x, y, 1e5).move == Move::kStopped);
  for (int i = 0; i < 20; ++i) y[size_t(i)] = 20 * kMegabyte + (i >= 18 ? 7 * kMegabyte : 0);
  CHECK(course(x, y, 1e5).move == Move::kStep);
}

TEST_CASE("one step long after the beginning has stopped five rounds later, however long nothing rose before it") {
  std::vector<double> x, y;
  for (int i = 0; i < 43; ++i) x.push_back(i), y.push_back(i < 4 ? 7e6 + 4e5 * i : i < 35 ? 8.8e6 : 102e6);
  CHECK(course(x, y, kGrain).move == Move::kStopped);
}

TEST_CASE("a rise that becomes a faster one grows, at the later rate") {
  std::vector<double> x, y;
  for (int i = 0; i < 15; ++i) x.push_back(i), y.push_back(33e6 + 13.7e6 * i + 38e6 * std::max(0, i - 8));
  const Course c = course(x, y, kGrain);
  CHECK(c.move == Move::kGrows);
  CHECK(c.slope.value == doctest::Approx(51.7e6).epsilon(0.03));
}

/// How often the 95 % interval of a rate holds the truth.
double covered(const std::function<std::vector<double>(std::mt19937&, size_t rounds)>& make, double truth) {
  std::mt19937 random(21);
  int held = 0;
  for (int i = 0; i < kPrograms; ++i) {
    const size_t rounds = 10 + random() % 90;
    const std::vector<double> y = make(random, rounds);
    std::vector<double> x(rounds);
    std::iota(x.begin(), x.end(), 0.0);
    const Rate r = rate(x, y);
    held += std::abs(r.value - truth) <= r.off();
  }
  MESSAGE("held: ", double(held) / kPrograms);
  return double(held) / kPrograms;
}

TEST_CASE("the 95 % interval of a rate holds the truth of sampled blocks, of noise, and of saw-teeth") {
  CHECK(covered(
            [](std::mt19937& random, size_t rounds) {  // some samples of 64 KiB in all, which stay
              std::vector<double> y;
              double level = 0;
              for (size_t i = 0; i < rounds; ++i)
                y.push_back(level += 65536.0 * std::poisson_distribution<int>(1.5)(random));
              return y;
            },
            1.5 * 65536) > 0.92);
  CHECK(covered(
            [](std::mt19937& random, size_t rounds) {
              std::vector<double> y;
              for (size_t i = 0; i < rounds; ++i)
                y.push_back(1e5 * double(i) + std::normal_distribution(0.0, 3e5)(random));
              return y;
            },
            1e5) > 0.92);
  CHECK(covered(
            [](std::mt19937& random, size_t rounds) {
              const size_t period = 3 + random() % (rounds / 5 + 1), from = random() % period;
              std::vector<double> y;
              for (size_t i = 0; i < rounds; ++i) y.push_back(1e5 * double(i) + 3e5 * double((i + from) % period));
              return y;
            },
            1e5) > 0.92);
}

TEST_CASE("a step between two looks that lie far apart is no rise in equal parts") {
  const std::vector<double> x = {0, 31, 63, 95, 127, 159, 191, 223, 511, 1023, 1535};
  std::vector<double> once(x.size(), 0), on(x.size(), 0);
  once.back() = 6.6e6;
  CHECK(course(x, once, 1e5).move != Move::kGrows);
  for (size_t i = 0; i < x.size(); ++i) on[i] = 4e4 * x[i];
  CHECK(course(x, on, 1e5).move == Move::kGrows);
}

TEST_CASE("too few rounds, or strange ones, say nothing") {
  CHECK(course(std::vector<double>{}, std::vector<double>{}, 1).move == Move::kShort);
  CHECK(course(std::vector<double>{0, 1, 2}, std::vector<double>{1, 2, 3}, 1).move == Move::kShort);
  const std::vector<double> same(50, 7.0);
  CHECK(course(same, same, 1).move == Move::kFlat);
}

}  // namespace
TEST_CASE("what was taken at once does not hide what grows after it") {
  std::vector<double> x, y;
  for (int i = 0; i < 120; ++i) {
    x.push_back(i);
    y.push_back(40e6 + (i >= 20 ? 95e6 : 0) + (i >= 90 ? 2.5e6 * (i - 90) : 0));
  }
  const Course late = course(x, y, 128 << 10);
  CHECK(late.move == Move::kGrows);
  CHECK(late.onset == doctest::Approx(90).epsilon(0.03));
  CHECK(late.slope.value == doctest::Approx(2.5e6).epsilon(0.05));
  for (size_t i = 90; i < y.size(); ++i) y[i] = y[89];
  CHECK(course(x, y, 128 << 10).move == Move::kStopped);
}

}  // namespace millpond::verdict
