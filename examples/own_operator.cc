// Operators with kernels of one's own: an element-wise one, which threads share, and a general one, each with its
// gradient as operators. Numbers are compared with the same written with Millpond's operators.
#include <millpond/millpond.h>

#include <cmath>
#include <cstdio>

#include "data.h"

using namespace millpond;
namespace mx = millpond::extend;

// x sigmoid(x)
struct Swish : mx::OwnElementwise {
  std::string name() const override { return "swish"; }
  void apply(std::span<const float* const> in, float* y, int64_t n) const override {
    for (int64_t i = 0; i < n; ++i) y[i] = in[0][i] / (1 + std::exp(-in[0][i]));
  }
  std::vector<mx::Value> gradient(std::span<const mx::Value> x, std::span<const mx::Value> y,
                                  std::span<const mx::Value> dy) const override {
    const mx::Value s = mx::sigmoid(x[0]);
    return {dy[0] * (s + y[0] * (1.0 - s))};
  }
};

// The running sum along the last axis. Its gradient is the running sum from the other end.
struct RunningSum : mx::OwnOperator {
  bool reverse;
  explicit RunningSum(bool r = false) : reverse(r) {}
  std::string name() const override { return "running_sum"; }
  std::string attributes() const override { return reverse ? "reverse" : ""; }
  std::vector<mx::Type> infer(std::span<const mx::Type> in) const override { return {in[0]}; }
  void compute(std::span<const mx::Array> in, std::span<const mx::Array> out) const override {
    const auto x = in[0].values<const float>();
    const auto y = out[0].values<float>();
    const size_t width = size_t(in[0].type.shape.back());
    for (size_t row = 0; row < x.size(); row += width) {
      float sum = 0;
      for (size_t i = 0; i < width; ++i) {
        const size_t at = row + (reverse ? width - 1 - i : i);
        y[at] = sum += x[at];
      }
    }
  }
  std::vector<mx::Value> gradient(std::span<const mx::Value>, std::span<const mx::Value>,
                                  std::span<const mx::Value> dy) const override {
    return mx::apply(std::make_shared<RunningSum>(!reverse), {dy[0]});
  }
};

struct SwishSum : mx::OwnLayer {
  bool own;  // with the operators above, or with Millpond's
  explicit SwishSum(bool o) : own(o) {}
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    if (own) return mx::apply(std::make_shared<RunningSum>(), mx::apply(std::make_shared<Swish>(), {x[0]}));
    const int64_t width = x[0].shape().back();
    Tensor ones(DType::kFloat32, {width, width});
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = i; j < width; ++j) ones.values<float>()[size_t(i * width + j)] = 1;
    return mx::matmul(x[0] * mx::sigmoid(x[0]), c.constant(ones));
  }
};

double trained(bool own, const Points& p) {
  clear_session();
  set_random_seed(5);
  Sequential model{Input({2}), Dense(16), mx::own_layer<SwishSum>("swish_sum", own), Dense(1, sigmoid)};
  model.compile("adam", "binary_crossentropy");
  return model.fit(p.x, p.y, {.batch_size = 50, .epochs = 5, .verbose = 0})["loss"].back();
}

int main() {
  const Points p = points(500);
  const double mine = trained(true, p), theirs = trained(false, p);
  std::printf("loss with own operators %.6f, with Millpond's %.6f\n", mine, theirs);
  return std::abs(mine - theirs) < 1e-4 ? 0 : 1;
}
