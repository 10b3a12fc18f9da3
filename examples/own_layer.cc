// Layers, a loss and metrics of one's own, from the public headers alone: a layer with two results, one with a state
// that is not trained, a recurrent one by scan, a loss, a mean metric and one that counts.
#include <millpond/millpond.h>

#include <cstdio>

#include "data.h"

using namespace millpond;
namespace mx = millpond::extend;

// Two results: x * gain, and the gains' mean for each sample.
struct Scale : mx::OwnLayer {
  mx::Weight gain;
  void build(mx::Build& b, std::span<const mx::Type> x) override {
    gain = b.add_weight("gain", {x[0].shape.back()}, "ones");
  }
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    const mx::Value y = x[0] * c.read(gain);
    return {y, mx::mean(y, {1}, true)};
  }
};

// Takes away the running mean of what it has seen: a state that every step of training moves.
struct Center : mx::OwnLayer {
  double momentum;
  mx::Weight mean;
  explicit Center(double m) : momentum(m) {}
  void build(mx::Build& b, std::span<const mx::Type> x) override {
    mean = b.add_weight("mean", {x[0].shape.back()}, "zeros", false);
  }
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    const mx::Value before = c.read(mean);
    if (c.training()) c.assign(mean, before * momentum + mx::mean(x[0], {0}) * (1 - momentum));
    return x[0] - before;
  }
};

// h = tanh(x w + h u) over the columns of a sample, which are taken for steps.
struct Recurrent : mx::OwnLayer {
  int64_t units;
  mx::Weight w, u;
  explicit Recurrent(int64_t n) : units(n) {}
  void build(mx::Build& b, std::span<const mx::Type>) override {
    w = b.add_weight("w", {1, units}, "glorot_uniform");
    u = b.add_weight("u", {units, units}, "orthogonal");
  }
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    const int64_t batch = x[0].shape()[0], steps = x[0].shape()[1];
    const mx::Value sequence = mx::reshape(mx::transpose(x[0], {1, 0}), {steps, batch, 1});
    const mx::Value zero = mx::broadcast_to(c.scalar(DType::kFloat32, 0), {batch, units});
    return mx::scan(std::vector{zero}, std::vector{sequence}, std::vector{c.read(w), c.read(u)},
                    [](std::span<const mx::Value> in) -> mx::Values {
                      return mx::tanh(mx::matmul(in[1], in[2]) + mx::matmul(in[0], in[3]));
                    })[0];
  }
};

// Small errors as their squares, large ones as what they are.
struct Huber : mx::OwnLoss {
  mx::Value values(mx::Value y, mx::Value p) const override {
    const mx::Value d = mx::abs(y - p);
    const mx::Value small = mx::minimum(d, d * 0.0 + 1.0);
    return mx::mean(small * (d - small * 0.5), {-1});
  }
};

struct LargestError : mx::OwnCountingMetric {
  std::vector<Count> counts() const override { return {{"largest", {DType::kFloat32, {}}}}; }
  std::vector<mx::Value> update(std::span<const mx::Value> before, mx::Value y, mx::Value p) const override {
    return {mx::maximum(before[0], mx::max(mx::abs(y - p)))};
  }
  double result(std::span<const Tensor> counts) const override { return counts[0].at(0); }
};

struct WithinTenth : mx::OwnMetric {
  mx::Value values(mx::Value y, mx::Value p) const override {
    const mx::Value d = mx::abs(y - p);
    return mx::cast(mx::greater(d * 0.0 + 0.1, d), DType::kFloat32);
  }
};

int main() {
  set_random_seed(5);
  const Points p = points(2000);
  const Input x({2});
  const std::vector<SymbolicTensor> scaled =
      mx::own_layer<Scale>("scale").call_all({mx::own_layer<Center>("center", 0.9)(x)});
  const SymbolicTensor recurrent = mx::own_layer<Recurrent>("recurrent", 8)(scaled[0]);
  const SymbolicTensor y = Dense(1, sigmoid)(Concatenate()({Dense(16, relu)(recurrent), scaled[1]}));
  Model model({x}, {y});
  model.compile({.optimizer = Adam(0.01),
                 .loss = mx::own_loss<Huber>(),
                 .metrics = {mx::own_metric<WithinTenth>(), mx::own_metric<LargestError>()}});
  model.summary({.batch = 64});
  const History h = model.fit(p.x, p.y, {.batch_size = 64, .epochs = 20, .verbose = 0});
  std::printf("loss %.4f to %.4f, within a tenth %.3f, largest error %.3f\n", h["loss"].front(), h["loss"].back(),
              h["within_tenth"].back(), h["largest_error"].back());
  return h["loss"].back() < 0.7 * h["loss"].front() ? 0 : 1;
}
