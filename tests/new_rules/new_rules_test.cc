// An optimizer and a metric that the library has not: each is an entry in a header and one file, and nothing else knows
// of them.
#include <doctest/doctest.h>

#include <algorithm>

#include "millpond/millpond.h"
#include "train/optimizers/kind.h"

using namespace millpond;

namespace {

Sequential one_weight(const Optimizer& optimizer, const MetricList& metrics = {}) {
  Sequential model{Input({1}), Dense(1, {.use_bias = false})};
  model.compile({.optimizer = optimizer, .loss = "mse", .metrics = metrics});
  model.set_weights({Tensor::of({1.f}, {1, 1})});
  return model;
}

}  // namespace

TEST_CASE("a new optimizer: trains by its formula, is planned with its numbers and known by its name") {
  Sequential model = one_weight(SlowSign(0.25));
  const Tensor x = Tensor::of({1.f}, {1, 1}), y = Tensor::of({-5.f}, {1, 1});
  for (const double wanted : {0.75, 0.625, 0.5625}) {
    model.train_on_batch(x, y);
    CHECK(model.get_weights()[0].at(0) == wanted);
  }
  CHECK(model.plan({.batch = 4}).account("slots/slow_sign.speed") == Bytes{4});
  CHECK(model.plan({.batch = 4}).programs[0].slow_kernels == 0);
  CHECK(model.print_passes({.batch = 4}).find("dense_update") != std::string::npos);  // its update is inside backward
  CHECK(std::ranges::count(Optimizer::known(), "slowsign") == 1);
  CHECK(Optimizer("SlowSign").learning_rate() == 0.01);
  CHECK_THROWS_WITH_AS(SlowSign(0.1, {.slower = 2}),
                       doctest::Contains("slow_sign: slower is 2, but must lie between 0 and 1"), Error);
}

TEST_CASE("a new optimizer: decays and clips as all do, and is read from a file") {
  struct File : train::SettingsSource {
    void number(const char* key, double& value) override {
      if (key == std::string("slower")) value = 1;
      if (key == std::string("learning_rate")) value = 0.125;
      if (key == std::string("weight_decay")) value = 2;
    }
    void flag(const char*, bool&) override {}
    void text(const char*, std::string&) override {}
  } file;
  for (const train::OptimizerKind* kind : train::optimizer_kinds()) {
    if (kind->type != "SlowSign") continue;
    Sequential model = one_weight(kind->make(&file));
    model.train_on_batch(Tensor::of({1.f}, {1, 1}), Tensor::of({-5.f}, {1, 1}));
    CHECK(model.get_weights()[0].at(0) == 1 - 0.125 * 2 - 0.125);
    return;
  }
  FAIL("it is not in the table");
}

TEST_CASE("a new metric: counts inside the step, is planned and known by its name") {
  Sequential model = one_weight(SGD(0), {"specificity", Specificity("strict", 0.25)});
  const Tensor p = Tensor::of({0.1f, 0.3f, 0.6f, 0.7f, 0.2f}, {5, 1}),
               y = Tensor::of({0.f, 0.f, 0.f, 1.f, 0.f}, {5, 1});
  const Results r = model.evaluate(p, y, {.batch_size = 2, .verbose = 0});
  CHECK(r["specificity"] == 0.75);
  CHECK(r["strict"] == 0.5);
  CHECK(model.fit(p, y, {.batch_size = 2, .epochs = 2, .verbose = 0})["strict"] == std::vector<double>{0.5, 0.5});
  CHECK(model.plan({.batch = 2}).account("metrics/strict/negatives") == Bytes{8});
}
