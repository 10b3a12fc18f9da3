#include <doctest/doctest.h>

#include "ops/batch_norm.h"
#include "ops/batch_norm_backward.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;

TEST_CASE("cpu batch_norm: agrees with the reference, backward too") {
  std::vector<Shape> shapes = awkward_shapes(2);
  shapes.insert(shapes.end(), {{2, 5, 7, 3}, {2, 9, 9, 64}, {1, 30, 30, 17}});
  for (const Shape& s : shapes) {
    const int64_t rows = s.without(-1).size();
    if (rows < 2) continue;
    const Shape channels{s.back()};
    const Tensor x = random(s, 1), gamma = random(channels, 2), beta = random(channels, 3), dy = random(s, 4);
    // means of n terms of the size of x; rstd is at most 3 here
    check_twin(cpu_backend(), ops::BatchNorm(0.1), {x, gamma, beta}, scale(double(rows) + 16));
    const auto r = run_operator(backend::reference_backend(), ops::BatchNorm(0.1), {x, gamma, beta});
    check_twin(cpu_backend(), ops::BatchNormBackward(0.1), {x, gamma, r[1], r[2], dy}, scale(double(rows) + 16));
  }
}

TEST_CASE("cpu batch_norm: a large mean does not spoil the variance") {
  Tensor x = random({400, 5}, 1);
  for (float& v : x.values<float>()) v += 100;
  // x itself is known to 100 u only, which is 350 u of its deviation; a variance from sums of squares would be off by
  // 1e4 u
  check_twin(cpu_backend(), ops::BatchNorm(1e-3), {x, random({5}, 2), random({5}, 3)}, scale(1000), {0, 2});
}

}  // namespace millpond::test
