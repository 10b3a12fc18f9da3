#include "backend/stage.h"

#include <doctest/doctest.h>

#include <cmath>

#include "train/support.h"

using namespace millpond;
using backend::Check;
using backend::Lane;
using backend::Rows;

TEST_CASE("stage: rows by index or in order, on one thread or several, are the rows") {
  for (const int64_t width : {1, 3, 63, 64, 1000, 100'000})
    for (const int threads : {1, 3}) {
      Team team(threads);
      const Tensor from = uniform({9, width}, 1);
      Tensor to(DType::kFloat32, {7, width});
      const uint32_t index[] = {8, 0, 3, 3, 7, 1, 2};
      Lane lane{from.data(), DType::kFloat32, to.data(), DType::kFloat32, width, Check::kFinite, 0};
      for (const bool by_index : {true, false}) {
        const Rows rows{by_index ? index : nullptr, 2, 7};
        CHECK(!backend::stage(team, {&lane, 1}, rows));
        bool same = true;
        for (int64_t r = 0; r < 7; ++r)
          for (int64_t c = 0; c < width; ++c) same &= to.at(r * width + c) == from.at(rows[r] * width + c);
        CHECK(same);
      }
    }
}

TEST_CASE("stage: the first refused row is found whoever stages it") {
  const int64_t width = 50'000;
  Tensor from = uniform({8, width}, 1), to(DType::kFloat32, {8, width});
  from.values<float>()[size_t(6 * width + 17)] = NAN;
  from.values<float>()[size_t(4 * width)] = INFINITY;
  for (const int threads : {1, 4}) {
    Team team(threads);
    const Lane lane{from.data(), DType::kFloat32, to.data(), DType::kFloat32, width, Check::kFinite, 0};
    const backend::Refusal bad = backend::stage(team, {&lane, 1}, {nullptr, 0, 8});
    CHECK(bad.lane == 0);
    CHECK(bad.at == 4);
  }
}

TEST_CASE("stage: short rows are copied and checked in every column") {
  Team team(1);
  for (int64_t width = 1; width <= 17; ++width)
    for (int64_t bad = -1; bad < width; ++bad) {
      Tensor from = uniform({5, width}, 1), to(DType::kFloat32, {3, width});
      if (bad >= 0) from.values<float>()[size_t(3 * width + bad)] = bad % 2 ? NAN : -INFINITY;
      const Lane lane{from.data(), DType::kFloat32, to.data(), DType::kFloat32, width, Check::kFinite, 0};
      const uint32_t index[] = {4, 3, 0};
      CHECK(backend::stage(team, {&lane, 1}, {index, 0, 3}).at == (bad < 0 ? -1 : 1));
      CHECK(to.at(3 * width - 1) == from.at(width - 1));
    }
}

TEST_CASE("stage: every pair of types converts as a cast does") {
  const Tensor numbers = Tensor::of<double>(std::vector<double>{0, 1, 2, 100, 1, 0}, {3, 2});
  for (const DType from : kAllDTypes)
    for (const DType to : kAllDTypes) {
      const Tensor source = numbers.astype(from);
      Tensor target(to, {3, 2});
      CHECK(backend::stage({source.data(), from, target.data(), to, 2, Check::kNone, 0}, {nullptr, 0, 3}) == -1);
      const Tensor want = source.astype(to);
      for (int64_t i = 0; i < 6; ++i) CHECK(target.at(i) == want.at(i));
    }
}
