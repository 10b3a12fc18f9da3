#include <doctest/doctest.h>

#include <cmath>

#include "ops/attention.h"
#include "ops/attention_backward.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;

TEST_CASE("cpu attention: agrees with the reference, causal or not, backward too") {
  for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{2, 3, 5, 4}, Shape{1, 2, 17, 16}, Shape{1, 1, 65, 8},
                         Shape{1, 2, 130, 64}, Shape{0, 2, 5, 4}})
    for (bool causal : {false, true}) {
      const Tensor q = random(s, 1), k = random(s, 2), v = random(s, 3), dout = random(s, 4);
      const double width = double(s[3]), length = double(s[2]), factor = 1 / std::sqrt(width);
      // scores are sums of `width` products, at most sqrt(width) large; then a softmax over `length`, then a sum over
      // it
      const Tolerance t = scale(4 * width + 2 * length + 16);
      check_twin(cpu_backend(), ops::Attention(causal, factor), {q, k, v}, t);
      const auto r = run_operator(backend::reference_backend(), ops::Attention(causal, factor), {q, k, v});
      check_twin(cpu_backend(), ops::AttentionBackward(causal, factor), {q, k, v, r[0], r[1], dout}, t);
    }
}

}  // namespace millpond::test
