// Optimizers as a user makes them. That they are Keras's is tested by tests/parity.
#include <doctest/doctest.h>

#include <cmath>

#include "backend/cpu/rule.h"
#include "train/optimizer.h"
#include "train/support.h"

using namespace millpond;

namespace {

Sequential two_layers(const Optimizer& optimizer) {
  Sequential model({Input({5}), Dense(40, {.activation = "tanh", .name = "first"}), Dense(3, {.name = "second"})});
  model.compile({.optimizer = optimizer, .loss = "mse"});
  return model;
}
constexpr int64_t kWeights = 4 * (5 * 40 + 40 + 40 * 3 + 3);

double norm_of_change(const Optimizer& optimizer) {
  set_random_seed(3);
  Sequential model = two_layers(optimizer);
  const Tensor x = uniform({16, 5}, 1), y = uniform({16, 3}, 2);
  const std::vector<Tensor> before = model.get_weights();
  model.train_on_batch(x, y);
  double sum = 0;
  const std::vector<Tensor> after = model.get_weights();
  for (size_t i = 0; i < after.size(); ++i)
    for (int64_t k = 0; k < after[i].size(); ++k) sum += std::pow(after[i].at(k) - before[i].at(k), 2);
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("optimizers: the plan has exactly the slots of each, under their names") {
  struct Row {
    Optimizer optimizer;
    std::vector<const char*> slots, numbers;
  };
  const Row rows[] = {{SGD(), {}, {}},
                      {SGD(0.01, {.momentum = 0.9}), {"sgd.momentum"}, {}},
                      {Adam(), {"adam.m", "adam.v"}, {}},
                      {AdamW(), {"adamw.m", "adamw.v"}, {}},
                      {RMSprop(), {"rmsprop.velocity"}, {}},
                      {RMSprop(0.001, {.momentum = 0.9, .centered = true}),
                       {"rmsprop.velocity", "rmsprop.average_gradient", "rmsprop.momentum"},
                       {}},
                      {Adagrad(), {"adagrad.accumulator"}, {}},
                      {Lion(), {"lion.momentum"}, {}},
                      {Nadam(0.001, {.name = "n"}), {"n.momentum", "n.velocity"}, {"n.u_product"}}};
  for (const Row& row : rows) {
    INFO(row.optimizer.name());
    Sequential model = two_layers(row.optimizer);
    const MemoryPlan plan = model.plan({.batch = 8});
    for (const char* slot : row.slots) CHECK(plan.account(std::string("slots/") + slot) == Bytes{kWeights});
    for (const char* number : row.numbers) CHECK(plan.account(std::string("slots/") + number) == Bytes{4});
    CHECK(plan.slots == Bytes{kWeights * int64_t(row.slots.size()) + 4 * int64_t(row.numbers.size()) + 4 + 8 +
                              4});  // learning rate, iterations, the model's counter
  }
}

TEST_CASE("optimizers: every one trains inside backward, without a slow kernel, and learns") {
  for (const std::string& name : Optimizer::known()) {
    INFO(name);
    set_random_seed(1);
    Optimizer optimizer(name);
    optimizer.set_learning_rate(name == "adagrad" || name == "sgd" ? 0.1 : 0.005);
    Sequential model{Input({10}), Dense(16, relu), Dense(1, sigmoid)};
    model.compile({.optimizer = optimizer, .loss = "binary_crossentropy"});
    const MemoryPlan plan = model.plan({.batch = 32});
    CHECK(plan.programs[0].slow_kernels == 0);
    CHECK(model.print_passes({.batch = 32}).find("dense_backward") != std::string::npos);
    const Tensor x = uniform({500, 10}, 2), y = learnable(x);
    const History h = model.fit(x, y, {.epochs = 25, .verbose = 0});
    CHECK(h["loss"].back() < 0.8 * h["loss"].front());
    CHECK(optimizer.iterations() == 25 * 16);
  }
}

TEST_CASE(
    "optimizers: SGD, momentum and Adam run their own loops; others, and these when they clip, run as expressions") {
  const auto written = [](const Optimizer& o) { return backend::cpu::written(o.impl()->rule).has_value(); };
  CHECK(written(SGD()));
  CHECK(written(SGD(0.1, {.weight_decay = 0.01})));
  CHECK(written(SGD(0.1, {.momentum = 0.9})));
  CHECK(written(SGD(0.1, {.momentum = 0.9, .nesterov = true, .weight_decay = 0.01})));
  CHECK(written(Adam()));
  CHECK(written(Adam(0.1, {.beta_1 = 0.5, .beta_2 = 0.5, .epsilon = 1e-3, .weight_decay = 0.1})));
  CHECK(written(AdamW()));
  CHECK(!written(RMSprop()));
  CHECK(!written(Nadam()));
  CHECK(!written(Adam(0.1, {.clipvalue = 1})));
  CHECK(!written(Adam(0.1, {.global_clipnorm = 1})));
}

TEST_CASE("optimizers: a slot begins with its initial value, and goes on from there") {
  Sequential model = two_layers(Adagrad(0, {.initial_accumulator_value = 0.25}));
  const Tensor x = uniform({16, 5}, 1), y = uniform({16, 3}, 2);
  model.train_on_batch(x, y);
  for (const auto& slots : model.optimizer().impl()->slots) {
    const Tensor sum = slots.variables[0]->copy("test");
    for (int64_t i = 0; i < sum.size(); ++i) CHECK(sum.at(i) >= 0.25);
  }
}

TEST_CASE("clipping: a step of SGD is as long as the norm allows, all weights together or each for itself") {
  const double free = norm_of_change(SGD(1));
  REQUIRE(free > 0.2);
  CHECK(norm_of_change(SGD(1, {.global_clipnorm = 0.125})) == doctest::Approx(0.125));
  CHECK(norm_of_change(SGD(1, {.global_clipnorm = 1e3})) == doctest::Approx(free));
  CHECK(norm_of_change(SGD(1, {.clipnorm = 1e-3})) == doctest::Approx(2e-3));  // four weights: sqrt(4) of 1e-3
  CHECK(norm_of_change(SGD(1, {.clipvalue = 1e3})) == doctest::Approx(free));
  CHECK(norm_of_change(SGD(1, {.clipvalue = 1e-4})) <= 1e-4 * std::sqrt(double(kWeights) / 4) * 1.0001);
}

TEST_CASE("optimizers: what is out of range is refused by its name, and so are two ways to clip") {
  CHECK_THROWS_WITH_AS(RMSprop(0.1, {.rho = 1.5}),
                       doctest::Contains("rmsprop: rho is 1.5, but must lie between 0 and 1"), Error);
  CHECK_THROWS_WITH_AS(Lion(-1),
                       doctest::Contains("lion: learning_rate is -1, but must be a number that is not below 0"), Error);
  CHECK_THROWS_WITH_AS(Adam(0.1, {.clipnorm = 1, .global_clipnorm = 2}),
                       doctest::Contains("gradients are clipped in one way only; leave all but one of them at 0"),
                       Error);
  CHECK_THROWS_WITH_AS(SGD(0.1, {.clipvalue = -1}), doctest::Contains("clipvalue is -1"), Error);
  CHECK_THROWS_WITH_AS(Optimizer("adma"),
                       doctest::Contains("known are adagrad, adam, adamw, lion, nadam, rmsprop, sgd"), Error);
}
