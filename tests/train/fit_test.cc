#include <doctest/doctest.h>

#include "train/support.h"

using namespace millpond;

TEST_CASE("fit: a small network learns, and evaluate and predict agree with it") {
  set_random_seed(1);
  Sequential model{Input({10}), Dense(16, relu), Dense(1, sigmoid)};
  model.compile({.optimizer = Adam(1e-2), .loss = "binary_crossentropy", .metrics = {"accuracy"}});
  const Tensor x = uniform({500, 10}, 2), y = learnable(x);
  const History h = model.fit(x, y, {.epochs = 30, .verbose = 0});
  CHECK(h["loss"].size() == 30);
  CHECK(h["loss"].back() < 0.5 * h["loss"].front());
  CHECK(h["accuracy"].back() > 0.9);
  const Results r = model.evaluate(x, y, {.verbose = 0});
  CHECK(r["accuracy"] > 0.9);
  const Tensor p = model.predict(x);
  CHECK(p.shape() == Shape{500, 1});
  int64_t right = 0;
  for (int64_t i = 0; i < 500; ++i) right += (p.at(i) > 0.5) == (y.at(i) > 0.5);
  CHECK(double(right) / 500 == doctest::Approx(r["accuracy"]));
}
