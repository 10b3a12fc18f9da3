#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "train/support.h"

using namespace millpond;

namespace {
std::vector<float> trained(uint64_t seed, int threads) {
  set_random_seed(seed);
  Sequential model{Input({9, 9, 2}), Conv2D(5, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(),
                   Dropout(0.3),     Dense(17, relu),         BatchNormalization(), Dense(3, softmax)};
  model.compile("adam", "sparse_categorical_crossentropy", {"accuracy"});
  const Tensor x = uniform({70, 9, 9, 2}, 1);
  const History h =
      model.fit(x, classes({70}, 3, 2), {.batch_size = 16, .epochs = 3, .verbose = 0, .threads = threads});
  auto all = flat(model.get_weights());
  for (const double l : h["loss"]) all.push_back(float(l));
  return all;
}
}  // namespace

TEST_CASE("determinism: the same seed and threads give the same bits, another seed gives others") {
  for (const int threads : {1, 2, 3}) {
    const auto first = trained(11, threads);
    CHECK(trained(11, threads) == first);
    CHECK(trained(12, threads) != first);
  }
}

TEST_CASE("determinism: dropout differs from step to step and is off when predicting") {
  set_random_seed(1);
  // The loss is the mean of what dropout leaves of ones, each scaled up to 2: half of them, another half each time.
  Sequential model{Input({1000}), Dense(1000, {.kernel_initializer = "zeros", .bias_initializer = "ones"}),
                   Dropout(0.5)};
  model.compile(SGD(0), "mae");
  const Tensor x(DType::kFloat32, {1, 1000}), y(DType::kFloat32, {1, 1000});
  std::vector<double> losses;
  for (int i = 0; i < 20; ++i) losses.push_back(model.train_on_batch(x, y)["loss"]);
  for (const double l : losses) CHECK(std::abs(l - 1) < 5 / std::sqrt(1000.0));  // five sigmas
  std::sort(losses.begin(), losses.end());
  CHECK(std::unique(losses.begin(), losses.end()) - losses.begin() > 10);
  CHECK(model.evaluate(x, y, {.verbose = 0})["loss"] == 1);
}
