#include <doctest/doctest.h>

#include "ops/layer_norm.h"
#include "ops/layer_norm_backward.h"
#include "ops/softmax.h"
#include "ops/softmax_cross_entropy.h"
#include "ops/softmax_cross_entropy_backward.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;

// A row of n values in [-r, r]: x - max is rounded once, an error of 2r u in the exponent; the exponential and the
// division add 2.5 and 0.5 ulps, the sum of n positive terms n u at most.
namespace {
double softmax_ulps(double r, int64_t n) { return 2 * r + 4 + double(n) / 2; }
}  // namespace

TEST_CASE("cpu softmax and its cross-entropy: agree with the reference") {
  std::vector<Shape> shapes = awkward_shapes(2);
  shapes.insert(shapes.end(), {{2, 1000}, {3, 5, 10}, {40, 10}, {2, 5003}});
  for (const Shape& s : shapes) {
    const Tensor z = random(s, 1, DType::kFloat32, -4, 4);
    check_twin(cpu_backend(), ops::Softmax(), {z}, ulps(softmax_ulps(4, s.back())));
    if (s.back() == 0) continue;
    for (DType t : {DType::kInt32, DType::kInt64, DType::kUInt8}) {
      const Tensor labels = random(s.without(-1), 2, t, 0, double(std::min<int64_t>(s.back(), 255)));
      // loss: log of the sum, plus the maximum, minus a logit, all of the size of the loss's range
      check_twin(cpu_backend(), ops::SoftmaxCrossEntropy(), {z, labels}, scale(softmax_ulps(4, s.back()), 4));
      check_twin(cpu_backend(), ops::SoftmaxCrossEntropyBackward(), {z, labels, random(s.without(-1), 3)},
                 scale(softmax_ulps(4, s.back()), 1));  // p - 1 of one class cancels
    }
  }
}

TEST_CASE("cpu softmax: large logits neither overflow nor vanish") {
  const Tensor z = values({3, 4}, {1e4, 1e4, -1e4, 0, -1e30, -1e30, -1e30, -1e30, 3e38, 0, 0, 0});
  check_twin(cpu_backend(), ops::Softmax(), {z}, ulps(8));
}

TEST_CASE("cpu layer_norm: agrees with the reference, backward too") {
  for (const Shape& s : awkward_shapes(2)) {
    if (s[1] < 2) continue;
    const Tensor x = random(s, 1), gamma = random({s[1]}, 2), beta = random({s[1]}, 3), dy = random(s, 4);
    const double n = double(s[0] + s[1]);
    // sums of n terms of the size of x, multiplied by rstd, which for two values in a row may be large: its error grows
    // with its square
    check_twin(cpu_backend(), ops::LayerNorm(0.1), {x, gamma, beta}, scale(n + 16));
    const auto r = run_operator(backend::reference_backend(), ops::LayerNorm(0.1), {x, gamma, beta});
    check_twin(cpu_backend(), ops::LayerNormBackward(), {x, gamma, r[1], r[2], dy}, scale(n + 16));
  }
  const Tensor x = random({2, 3, 768}, 1);
  check_twin(cpu_backend(), ops::LayerNorm(1e-5), {x, random({768}, 2), random({768}, 3)}, scale(768));
}

}  // namespace millpond::test
