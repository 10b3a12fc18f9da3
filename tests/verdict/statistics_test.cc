#include "verdict/statistics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/random.h"

using namespace millpond::verdict;
using millpond::Random;

namespace {
std::vector<double> count(int n) {
  std::vector<double> x;
  for (int i = 0; i < n; ++i) x.push_back(i);
  return x;
}
}  // namespace

TEST_CASE("median: of nothing, of odd and even") {
  CHECK(median({}) == 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
}

TEST_CASE("theil_sen: one strange value does not turn the slope") {
  CHECK(theil_sen(std::vector<double>{0, 1, 2, 3, 4, 5}, std::vector<double>{0, 2, 4, 90, 8, 10}).value ==
        doctest::Approx(2));
}

TEST_CASE("theil_sen: the range holds the true slope nine times in ten") {
  int held = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    std::vector<double> y;
    for (int i = 0; i < 20; ++i) y.push_back(3 * i + 10 * random.normal());
    const Slope s = theil_sen(count(20), y);
    held += s.range.low <= 3 && 3 <= s.range.high;
  }
  CHECK(held >= 350);
  CHECK(held <= 390);
}

TEST_CASE("theil_sen: fewer than two points have no slope, and many are thinned out") {
  CHECK(theil_sen({}, {}).value == 0);
  CHECK(theil_sen(std::vector<double>{1, 1}, std::vector<double>{1, 5}).value == 0);
  std::vector<double> y;
  for (int i = 0; i < 20000; ++i) y.push_back(0.5 * i);
  CHECK(theil_sen(count(20000), y).value == doctest::Approx(0.5));
}

TEST_CASE("biggest_step: the highest rise from one to the next, and none of what falls") {
  CHECK(biggest_step(std::vector<double>{10, 11, 50, 51, 50}) == 39);
  CHECK(biggest_step(std::vector<double>{3, 2, 1}) == 0);
}

TEST_CASE("fit_unit: bytes follow the count that varies") {
  const std::vector<double> shapes = {4, 8, 11, 13, 14, 15, 15, 16};
  std::vector<double> y;
  for (double s : shapes) y.push_back(5 * s);
  const UnitFit fit = fit_unit(shapes, y);
  CHECK(fit.straight > 0.999);
  CHECK(fit.varies);
  CHECK_FALSE(fit_unit(count(8), y).varies);
}

TEST_CASE(
    "theil_sen: where nearly all values are the same the slope is exactly nothing, whichever way it is worked out") {
  std::vector<double> x, y;
  for (int i = 0; i < 400; ++i) x.push_back(i), y.push_back(i % 6 == 1 ? 1000 + 7 * i : 50);
  const Slope few = theil_sen(x, y);
  CHECK(few.value == 0);
  CHECK(few.range.low == 0);
  CHECK(few.range.high == 0);
  for (int i = 0; i < 400; ++i) y[size_t(i)] = i % 2 ? 1000 + 7 * i : 50;  // half of them: not so short
  CHECK(theil_sen(x, y).range.high > 0);
}

TEST_CASE("rhythm: a staircase, a sawtooth and uneven times are found, with the length of a round") {
  Random random(5);
  for (const double every : {0.4, 1.3, 7.0}) {
    std::vector<double> x, stairs, teeth;
    for (int i = 0; i < 600; ++i) {
      x.push_back(i * 0.05 * (every > 2 ? 4 : 1) + 0.02 * random.uniform());
      const double rounds = x.back() / every;
      stairs.push_back(3e6 * std::floor(rounds) + 1e5 * random.uniform());
      teeth.push_back(2e7 * (rounds - std::floor(rounds)) + 1e6 * rounds + 1e6 * random.uniform());
    }
    for (const std::vector<double>& y : {stairs, teeth}) {
      const Rhythm found = rhythm(x, y);
      CHECK(found.every == doctest::Approx(every).epsilon(0.05));
      CHECK(found.strength >= 0.6);
    }
  }
}

TEST_CASE("rhythm: lines, one step, noise and random walks have none") {
  Random random(7);
  const std::vector<double> x = count(400);
  std::vector<double> line, step;
  for (double at : x) line.push_back(3 * at), step.push_back(at < 130 ? 0 : 1e8);
  CHECK(rhythm(x, line).every == 0);
  CHECK(rhythm(x, step).every == 0);
  CHECK(rhythm(std::vector<double>{}, std::vector<double>{}).every == 0);
  CHECK(rhythm(std::vector<double>(50, 1.0), std::vector<double>(50, 1.0)).every == 0);
  int noise = 0, walks = 0;
  for (int seed = 0; seed < 200; ++seed) {
    std::vector<double> loud, walk{0};
    for (size_t i = 0; i < x.size(); ++i) loud.push_back(random.uniform());
    for (size_t i = 1; i < x.size(); ++i) walk.push_back(walk.back() + random.uniform() - 0.5);
    noise += rhythm(x, loud).every > 0;
    walks += rhythm(x, walk).every > 0;
  }
  CHECK(noise == 0);
  CHECK(walks <= 10);  // one in twenty
}
