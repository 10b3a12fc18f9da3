// Layers, losses, activations and metrics on eager tensors.
#include "millpond/layers.h"
#include "eager/support.h"
#include "millpond/activations.h"
#include "millpond/losses.h"
#include "millpond/metrics.h"
#include "millpond/random.h"

using namespace millpond;

namespace {
EagerTensor ramp(Shape shape, double scale = 0.1) {
  const EagerTensor all = ops::cast(ops::arange(0, shape.size()) % 17, DType::kFloat32) * scale - 0.5;
  return ops::reshape(all, shape);
}
EagerTensor column(std::vector<double> values) {
  const int64_t n = int64_t(values.size());
  return tensor({n, 1}, std::move(values));
}
}  // namespace

TEST_CASE("a layer called on values gives what its formula gives, and its weights have gradients") {
  set_random_seed(1);
  const Dense dense(3, activations::tanh);
  const EagerTensor x = ramp({5, 4});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const EagerTensor y = dense(x);
  const Variables w = dense.trainable_variables();
  REQUIRE(w.size() == 2);
  CHECK(w[0].path() == dense.name() + "/kernel");
  const EagerTensor by_hand = ops::tanh(ops::matmul(x, w[0]) + w[1].value());
  check_near(y, list(by_hand));
  const EagerTensors got = tape.gradient(y, {x, w[0], w[1]}), wanted = tape.gradient(by_hand, {x, w[0], w[1]});
  for (size_t i = 0; i < got.size(); ++i) check_near(got[i], list(wanted[i]));
}

TEST_CASE("second derivatives go through layers: a gradient penalty") {
  set_random_seed(2);
  const Dense one(4, activations::tanh), two(1);
  const EagerTensor x = ramp({3, 2});
  const auto penalty = [&](bool by_layer) {
    const auto f = [&](const EagerTensor& in) {
      if (by_layer) return two(one(in));
      const Variables a = one.variables(), b = two.variables();
      return ops::matmul(ops::tanh(ops::matmul(in, a[0]) + a[1].value()), b[0]) + b[1].value();
    };
    (void)f(x);
    GradientTape outer;
    GradientTape inner;
    inner.watch(x);
    const EagerTensor slope = inner.gradient(ops::sum(f(x)), x);
    const Variables a = one.variables(), b = two.variables();
    return outer.gradient(ops::mean(ops::square(slope)), {a[0], a[1], b[0]});
  };
  const auto layer = (void(two(one(x))), penalty(true)), hand = penalty(false);
  for (size_t i = 0; i < layer.size(); ++i) check_near(layer[i], list(hand[i]), 1e-5);
}

TEST_CASE("dropout drops in training alone, differently each time, and goes back through what it kept") {
  const Dropout dropout(0.5);
  const EagerTensor x = ops::ones({10, 100});
  check_near(dropout(x) - x, std::vector<double>(1000));
  GradientTape tape;
  tape.watch(x);
  const EagerTensor y = dropout(x, true), other = dropout(x, true);
  CHECK(double(ops::sum(ops::cast(y == other, DType::kInt32))) < 900);
  check_near(tape.gradient(y, x), list(y));  // kept: 2, dropped: 0, as the values of ones
}

TEST_CASE("a layer with a state changes it when training, and not otherwise") {
  const BatchNormalization norm({.momentum = 0.5});
  const EagerTensor x = ramp({8, 3});
  (void)norm(x);
  check_near(norm.variables()[2], {0, 0, 0});
  GradientTape tape;
  tape.watch(x);
  const EagerTensor y = norm(x, true);
  check_near(norm.variables()[2], list(ops::mean(x, {0}) * 0.5));
  check_near(ops::mean(y, {0}), {0, 0, 0}, 1e-5);
  const EagerTensor g = tape.gradient(ops::sum(ops::square(y) * ramp({8, 3})), x);
  check_near(ops::sum(g, {0}), {0, 0, 0}, 1e-4);
}

TEST_CASE("masks go with values, and indices out of range are refused") {
  const Embedding embedding(5, 4, {.mask_zero = true});
  const LSTM lstm(3);
  const EagerTensor ids = EagerTensor(Tensor::of({1, 2, 0, 0, 3, 4, 1, 2}, {2, 4}));
  GradientTape tape;
  const EagerTensor padded = lstm(embedding(ids));
  const EagerTensor cut = lstm(embedding(ids[{Slice{0, 1}, Slice{0, 2}}]));
  check_near(padded[0], list(cut[0]));
  const Variables weights = lstm.trainable_variables();
  for (const EagerTensor& g : tape.gradient(ops::sum(padded), weights)) CHECK_FALSE(g.is_none());
  CHECK(message_of([&] { return embedding(ops::full({1, 2}, 5, DType::kInt32)); }) ==
        "layer \"" + embedding.name() + "\": index 5 does not lie in [0, 5)");
}

TEST_CASE("gradients of a loop over steps agree with central differences") {
  set_random_seed(4);
  const LSTM lstm(2);
  const EagerTensor x = ramp({2, 3, 2}, 0.07);
  (void)lstm(x);
  const Variables w = lstm.trainable_variables();
  GradientTape tape;
  tape.watch(x);
  const EagerTensor g = tape.gradient(ops::sum(lstm(x)), x);
  const Tensor host = x.to_tensor();
  std::vector<double> wanted;
  for (int64_t i = 0; i < host.size(); ++i) {
    const auto at = [&](float by) {
      Tensor moved = host.astype(host.dtype());
      moved.values<float>()[size_t(i)] += by;
      return double(ops::sum(lstm(EagerTensor(moved))));
    };
    wanted.push_back((at(0.01f) - at(-0.01f)) / 0.02);
  }
  check_near(g, wanted, 2e-4);  // of float32: u / h and h^2
}

TEST_CASE("an operator without a gradient is named when it is asked for, not before") {
  const MaxPooling2D pool({2, 2});
  const EagerTensor x = ramp({1, 4, 4, 1});
  GradientTape outer, inner;
  outer.watch(x), inner.watch(x);
  const EagerTensor slope = inner.gradient(ops::sum(ops::square(pool(x))), x);
  CHECK(slope.shape() == x.shape());
  CHECK(message_of([&] {
          return outer.gradient(slope, x);
        }).find("second derivatives of max-pooling are not there yet") != std::string::npos);
}

TEST_CASE("a tape outlives the layer that it has recorded") {
  const EagerTensor x = ramp({3, 4});
  GradientTape tape;
  tape.watch(x);
  EagerTensor y;
  std::vector<double> kernel;
  {
    const Dense dense(2, {.use_bias = false});
    y = dense(x);
    kernel = list(dense.variables()[0]);
  }
  std::vector<double> wanted;
  for (int row = 0; row < 3; ++row)
    for (size_t i = 0; i < 4; ++i) wanted.push_back(kernel[2 * i] + kernel[2 * i + 1]);
  check_near(tape.gradient(y, x), wanted);
}

TEST_CASE("losses by themselves are what their formulas say") {
  const EagerTensor y({{1, 0}, {0, 1}}), p({{0.8, 0.2}, {0.4, 0.6}});
  CHECK(double(losses::MeanSquaredError()(y, p)) == doctest::Approx((0.04 + 0.04 + 0.16 + 0.16) / 4));
  CHECK(double(Loss("mae")(y, p)) == doctest::Approx((0.2 + 0.2 + 0.4 + 0.4) / 4));
  CHECK(double(Loss("categorical_crossentropy")(y, p)) == doctest::Approx(-(std::log(0.8) + std::log(0.6)) / 2));
  const SparseCategoricalCrossentropy sparse;
  CHECK(double(sparse(EagerTensor(Tensor::of({0, 1}, {2})), p)) ==
        doctest::Approx(-(std::log(0.8) + std::log(0.6)) / 2));
  CHECK(
      message_of([&] { return sparse(EagerTensor(Tensor::of({0, 2}, {2})), p); }) ==
      "sparse_categorical_crossentropy: the label 2 does not lie in [0, 2); predictions are [2, 2]: one of 2 classes");
}

TEST_CASE("a loss sees through the softmax and the sigmoid that a layer ends in, so that it is exact") {
  const Activation soft("softmax"), sigmoid("sigmoid");
  const EagerTensor z({{200, 0}, {0, 100}});
  GradientTape tape;
  tape.watch(z);
  const EagerTensor loss = Loss("sparse_categorical_crossentropy")(EagerTensor(Tensor::of({1, 0}, {2})), soft(z));
  CHECK(double(loss) == 150);
  check_near(tape.gradient(loss, z), {0.5, -0.5, -0.5, 0.5});
  CHECK(double(Loss("binary_crossentropy")(ops::zeros({2, 1}), sigmoid(column({60, 40})))) == 50);
}

TEST_CASE("metrics by themselves count until they are reset, and copies count together") {
  Metric accuracy = "accuracy";
  Metric same = accuracy;
  const EagerTensor y = column({1, 0, 1}), p = column({0.9, 0.8, 0.3});
  accuracy.update_state(y, p);
  CHECK(same.result() == doctest::Approx(1.0 / 3));
  same.update_state(y, y);
  CHECK(accuracy.result() == doctest::Approx(4.0 / 6));
  accuracy.reset_state();
  CHECK(same.result() == 0);
  Precision precision;
  Recall recall;
  CHECK(precision(y, p) == doctest::Approx(0.5));
  CHECK(recall(y, p) == doctest::Approx(0.5));
  CHECK(precision(y, y) == doctest::Approx(3.0 / 4));
  precision.reset_state();
  CHECK(precision.result() == 0);
  metrics::Mean mean("loss"), also = mean;
  mean.update_state(EagerTensor::scalar(2));
  also.update_state(EagerTensor({4, 6}));
  CHECK(mean.result() == 4);
  mean.reset_state();
  CHECK(also.result() == 0);
  AUC auc;
  auc.update_state(y, column({0.9, 0.1, 0.8}));
  CHECK(auc.result() == doctest::Approx(1));
}

TEST_CASE("activations can be called") {
  const EagerTensor x({-1, 0, 2});
  check_near(relu(x), {0, 0, 2});
  check_near(activations::gelu(x), {-0.15865525, 0, 1.9544997}, 1e-6);
  GradientTape tape;
  tape.watch(x);
  check_near(tape.gradient(silu(x), x), {0.07232949, 0.5, 1.0907843}, 1e-6);
}
