// 200 MB of random values, read shuffled under a budget: every value, every row once, and resident memory.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/random.h"
#include "io/npy.h"
#include "support.h"

using namespace millpond;
using namespace millpond::test;

TEST_CASE("200 MB of random values are read shuffled, value by value, with a fraction of that resident") {
  constexpr int64_t kRows = 500'000, kWide = 100;
  constexpr Bytes kBudget = 64_MiB;
  const auto folder = std::filesystem::temp_directory_path() / ("millpond_large_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto value = [](int64_t row, int64_t column) {
    return uint32_t(mix64(uint64_t(row * kWide + column)) >> 9) * 0x1p-23f;
  };
  {
    io::NpyWriter x((folder / "x.npy").string(), DType::kFloat32, {kWide}),
        y((folder / "y.npy").string(), DType::kInt64, {});
    std::vector<float> row(kWide);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kWide; ++c) row[size_t(c)] = value(r, c);
      x.append(std::as_bytes(std::span(row)));
      y.append(std::as_bytes(std::span(&r, 1)));
    }
    x.close();
    y.close();
  }
  const Dataset d = Dataset::from_npy({(folder / "x.npy").string(), (folder / "y.npy").string()})
                        .shuffle({.seed = 3})
                        .batch(256)
                        .prefetch(AUTOTUNE)
                        .with_options({.budget = kBudget});
  std::vector<bool> seen(kRows);
  const auto before = totals();
  REQUIRE(before);
  Bytes most;
  int64_t rows = 0, wrong = 0, batches = 0, in_place = 0;
  DatasetIterator it = d.iterator();
  for (Element e; it.next(e); ++batches) {
    const auto x = e[0].values<float>();
    const auto y = e[1].values<int64_t>();
    for (size_t i = 0; i < y.size(); ++i) {
      wrong += seen[size_t(y[i])];
      seen[size_t(y[i])] = true;
      in_place += y[i] == rows + int64_t(i);
      for (int64_t c = 0; c < kWide; ++c) wrong += x[i * kWide + size_t(c)] != value(y[i], c);
    }
    rows += int64_t(y.size());
    if (batches % 64 == 0) most = std::max(most, totals()->resident);
  }
  CHECK(wrong == 0);
  CHECK(rows == kRows);
  CHECK(in_place < 20);  // about one is expected of a good shuffle
  CHECK(it.peak() <= kBudget);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  CHECK(most - before->resident < kBudget);
#endif
  std::filesystem::remove_all(folder);
}
