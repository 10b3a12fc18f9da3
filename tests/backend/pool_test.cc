#include <doctest/doctest.h>

#include "ops/average_pool2d.h"
#include "ops/average_pool2d_backward.h"
#include "ops/max_pool2d.h"
#include "ops/max_pool2d_backward.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Window;

TEST_CASE("cpu pools: agree with the reference, ties included") {
  const Window windows[] = {
      {.height = 2, .width = 2, .stride_h = 2, .stride_w = 2},
      {.height = 3, .width = 3, .stride_h = 2, .stride_w = 2, .top = 1, .bottom = 1, .left = 1, .right = 1},
      {.height = 3, .width = 2, .top = 1, .right = 1},
      {.height = 2, .width = 2, .stride_h = 3, .stride_w = 1, .dilation_h = 2, .dilation_w = 1},
      {},
      {.height = 17, .width = 16, .top = 12, .bottom = 12, .left = 13, .right = 13},  // winners do not fit into bytes
  };
  for (const Window& w : windows)
    for (const Shape& s : {Shape{0, 4, 4, 3}, Shape{1, 3, 3, 1}, Shape{2, 7, 9, 3}, Shape{1, 8, 6, 16},
                           Shape{2, 9, 5, 17}, Shape{1, 20, 21, 33}})
      for (const Tensor& x : {random(s, 1), random(s, 2, DType::kInt32, 0, 3).astype(DType::kFloat32)}) {
        CAPTURE(to_string(w));
        const Tensor winners = run_operator(backend::reference_backend(), ops::MaxPool2D(w), {x})[1];
        const Tensor dy = random(winners.shape(), 3);
        const double taps = double(w.height * w.width);
        check_twin(cpu_backend(), ops::MaxPool2D(w), {x}, exact());
        check_twin(cpu_backend(), ops::AveragePool2D(w), {x}, terms(taps));
        check_twin(cpu_backend(), ops::AveragePool2DBackward(w, s), {dy}, terms(taps + 1));
        // the winners are the same, so the sums are of the same terms; of |dy| at most sum of all
        check_twin(cpu_backend(), ops::MaxPool2DBackward(w, s), {winners, dy}, scale(taps));
      }
}

}  // namespace millpond::test
