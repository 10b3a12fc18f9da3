#include "backend/cpu/gemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backend/cpu/isa.h"

namespace millpond::backend::cpu {
namespace {

/// Rows are further apart than they are long; what lies between must stay as it is.
void check(const Gemm::Size& s, bool generated, unsigned seed) {
  CAPTURE(s.m);
  CAPTURE(s.n);
  CAPTURE(s.k);
  CAPTURE(s.add);
  CAPTURE(s.trans_a);
  CAPTURE(generated);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  const int64_t rows_a = s.trans_a ? s.k : s.m;
  std::vector<float> a(size_t(rows_a * s.lda)), b(size_t(s.k * s.ldb)), c(size_t(s.m * s.ldc));
  for (std::vector<float>* all : {&a, &b, &c})
    for (float& x : *all) x = draw(random);
  const std::vector<float> before = c;
  Gemm gemm(s);
  if (generated) gemm.generate();
  REQUIRE(gemm);
  gemm(a.data(), b.data(), c.data());
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.ldc; ++j) {
      const size_t at = size_t(i * s.ldc + j);
      if (j >= s.n) {
        REQUIRE(c[at] == before[at]);
        continue;
      }
      double sum = s.add ? double(before[at]) : 0, size = std::abs(sum);
      for (int64_t k = 0; k < s.k; ++k) {
        const double term =
            double(a[size_t(s.trans_a ? k * s.lda + i : i * s.lda + k)]) * double(b[size_t(k * s.ldb + j)]);
        sum += term, size += std::abs(term);
      }
      // k additions, each off by half a unit in the last place of what was summed so far.
      REQUIRE(std::abs(double(c[at]) - sum) <= double(s.k + 1) * 0x1p-24 * size + 1e-30);
    }
}

}  // namespace

TEST_CASE(
    "Gemm: our own loops and generated code agree with sums in double for every shape of tile, and touch nothing "
    "beside") {
  if (isa() == Isa::kNone) return;
  unsigned seed = 1;
  for (const int64_t m : {1, 2, 5, 6, 7, 13})
    for (const int64_t n : {1, 7, 8, 15, 16, 17, 63, 64, 65, 130})
      for (const int64_t k : {1, 3, 32})
        for (const bool add : {false, true})
          for (const bool turned : {false, true}) {
            const Gemm::Size size{m, n, k, (turned ? m : k) + 3, n + 1, n + 5, add, turned};
            check(size, false, ++seed);
            check(size, true, seed);
          }
}

TEST_CASE("Gemm: a dimension of 0 has no kernel") {
  CHECK(!Gemm({0, 4, 4, 4, 4, 4}));
  CHECK(!Gemm({4, 4, 0, 4, 4, 4}));
  CHECK(!Gemm());
}

}  // namespace millpond::backend::cpu
