// Loops of one's own beside fit: the same weights after ten steps, with every optimizer, layer state and kind of loss.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "train/support.h"

using namespace millpond;

namespace {

// Both do the same arithmetic, but fit fuses backward with the optimizer, so that sums are taken in other orders. A sum of n
// float32 products errs by at most 2 u (n + 2) of the sum of magnitudes (u = 2^-24); ten steps of gradients below one with
// n up to 200 and rates of 0.1 stay within 10 * 0.1 * 2 u * 202, 2.4e-5. Adam divides a gradient by its own size: where that
// is tiny, so is what is divided by, and a relative error of the gradient is one of the step.
constexpr double kFar = 2.4e-5;

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}

// w - (w - g) is g but for two roundings of w, which is below 2.
void check_near(const std::vector<float>& gradient, const EagerTensor& step) {
  const std::vector<float> other = flat({step.to_tensor()});
  CHECK(apart(gradient, other) <= 1e-6);
}

struct Steps {
  std::vector<double> losses;
  std::vector<float> weights;
};

constexpr int kSteps = 10, kBatch = 8;

Steps by_fit(const std::function<Model()>& make, const std::function<Optimizer()>& optimizer, const char* loss,
             const Tensor& x, const Tensor& y) {
  clear_session();
  set_random_seed(7);
  Model model = make();
  model.compile({.optimizer = optimizer(), .loss = loss});
  Steps s;
  for (int i = 0; i < kSteps; ++i)
    s.losses.push_back(
        model.train_on_batch(x.rows(i * kBatch, (i + 1) * kBatch), y.rows(i * kBatch, (i + 1) * kBatch))["loss"]);
  s.weights = flat(model.get_weights());
  return s;
}

Steps by_loop(const std::function<Model()>& make, const std::function<Optimizer()>& of, const char* name,
              const Tensor& x, const Tensor& y) {
  clear_session();
  set_random_seed(7);
  const Model model = make();
  Optimizer optimizer = of();
  const Loss loss_fn = name;
  Steps s;
  for (int i = 0; i < kSteps; ++i) {
    GradientTape tape;
    const EagerTensor p = model(x.rows(i * kBatch, (i + 1) * kBatch), true);
    const EagerTensor loss = loss_fn(y.rows(i * kBatch, (i + 1) * kBatch), p);
    const Variables weights = model.trainable_variables();
    optimizer.apply(tape.gradient(loss, weights), weights);
    s.losses.push_back(double(loss));
  }
  CHECK(optimizer.iterations() == kSteps);
  s.weights = flat(model.get_weights());
  return s;
}

void check_same(const std::function<Model()>& make, const std::function<Optimizer()>& optimizer, const char* loss,
                const Tensor& x, const Tensor& y, double tolerance = kFar) {
  const Steps one = by_fit(make, optimizer, loss, x, y), two = by_loop(make, optimizer, loss, x, y);
  for (int i = 0; i < kSteps; ++i) {
    CAPTURE(i);
    CHECK(std::abs(one.losses[size_t(i)] - two.losses[size_t(i)]) <= tolerance * 10);
  }
  CHECK(apart(one.weights, two.weights) <= tolerance);
}

Model mlp() { return Sequential{Input({12}), Dense(16, relu), Dense(8, activations::tanh), Dense(1, sigmoid)}; }

}  // namespace

TEST_CASE("ten steps of a loop give the weights of ten steps of fit, with every optimizer") {
  const Tensor x = uniform({kSteps * kBatch, 12}, 1), y = learnable(x);
  const std::vector<std::pair<const char*, std::function<Optimizer()>>> all{
      {"sgd", [] { return SGD(0.1); }},
      {"momentum", [] { return SGD(0.05, {.momentum = 0.9, .nesterov = true}); }},
      {"adam", [] { return Adam(0.01); }},
      {"adamw", [] { return AdamW(0.01, {.weight_decay = 0.01}); }},
      {"rmsprop", [] { return RMSprop(0.01, {.momentum = 0.5}); }},
      {"adagrad", [] { return Adagrad(0.1); }},
      {"nadam", [] { return Nadam(0.01); }},
      {"clipped", [] { return SGD(0.1, {.clipnorm = 0.1}); }},
      {"all clipped", [] { return SGD(0.1, {.global_clipnorm = 0.2}); }},
      {"values clipped", [] { return SGD(0.1, {.clipvalue = 0.01}); }}};
  for (const auto& [name, optimizer] : all) {
    CAPTURE(std::string(name));
    check_same(mlp, optimizer, "binary_crossentropy", x, y);
  }
}

TEST_CASE("the same with convolutions, states, dropout and several classes") {
  const Tensor x = uniform({kSteps * kBatch, 8, 8, 2}, 3), y = classes({kSteps * kBatch}, 4, 4);
  check_same(
      [] {
        return Sequential{Input({8, 8, 2}), Conv2D(4, {3, 3}, relu), MaxPooling2D({2, 2}), BatchNormalization(),
                          Flatten(),        Dropout(0.25),           Dense(4, softmax)};
      },
      [] { return SGD(0.1); }, "sparse_categorical_crossentropy", x, y);
}

TEST_CASE("the same with sequences and masks") {
  const Tensor x = classes({kSteps * kBatch, 5}, 6, 5), y = uniform({kSteps * kBatch, 1}, 6);
  check_same(
      [] { return Sequential{Input({5}, DType::kInt32), Embedding(6, 4, {.mask_zero = true}), LSTM(4), Dense(1)}; },
      [] { return SGD(0.1); }, "mse", x, y);
}

TEST_CASE("a loop and fit go on where the other stopped, with one optimizer and its slots") {
  const Tensor x = uniform({kBatch, 12}, 1), y = learnable(x);
  set_random_seed(3);
  Model model = mlp();
  model.compile({.optimizer = Adam(0.01), .loss = "binary_crossentropy"});
  (void)model.train_on_batch(x, y);
  Optimizer optimizer = model.optimizer();
  const Variables weights = model.trainable_variables();
  GradientTape tape;
  const EagerTensor loss = Loss("binary_crossentropy")(y, model(x, true));
  const EagerTensors gradients = tape.gradient(loss, weights);
  std::vector<std::pair<EagerTensor, Variable>> pairs;
  for (size_t i = 0; i < weights.size(); ++i) pairs.emplace_back(gradients[i], weights[i]);
  optimizer.apply_gradients(pairs);
  CHECK(optimizer.iterations() == 2);
  CHECK(optimizer.slots().size() == 2 * weights.size());
  CHECK(optimizer.slots()[0].first == "slots/adam.m/" + weights[0].path());
  (void)model.train_on_batch(x, y);
  CHECK(optimizer.iterations() == 3);

  set_random_seed(3);
  Model twin = mlp();
  twin.compile({.optimizer = Adam(0.01), .loss = "binary_crossentropy"});
  for (int i = 0; i < 3; ++i) (void)twin.train_on_batch(x, y);
  CHECK(apart(flat(model.get_weights()), flat(twin.get_weights())) <= kFar);
}

TEST_CASE("a tape's gradients are those of the planned step") {
  const Tensor x = uniform({kBatch, 12}, 8), y = learnable(x);
  Model model = mlp();
  model.compile({.optimizer = SGD(1), .loss = "binary_crossentropy"});
  (void)model(x);
  const std::vector<Tensor> before = model.get_weights();
  GradientTape tape;
  const EagerTensors gradients =
      tape.gradient(Loss("binary_crossentropy")(y, model(x, true)), model.trainable_variables());
  (void)model.train_on_batch(x, y);  // with a rate of 1 a step is the gradient
  const std::vector<Tensor> after = model.get_weights();
  for (size_t i = 0; i < before.size(); ++i)
    check_near(flat({gradients[i].to_tensor()}), EagerTensor(before[i]) - EagerTensor(after[i]));
}

TEST_CASE("threads train models of their own with tapes, with the same weights as one after the other") {
  const Tensor x = uniform({kBatch, 12}, 9), y = learnable(x);
  const auto trained = [&](uint64_t seed) {
    const SeedScope scope(seed);
    const Model model = mlp();
    Adam optimizer(0.01);
    const Loss loss_fn = "binary_crossentropy";
    for (int i = 0; i < 30; ++i) {
      GradientTape tape;
      const EagerTensor loss = loss_fn(y, model(x, true));
      optimizer.apply(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    }
    return flat(model.get_weights());
  };
  std::vector<std::vector<float>> alone(4), together(4);
  for (size_t i = 0; i < 4; ++i) alone[i] = trained(i + 1);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { together[i] = trained(i + 1); });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < 4; ++i) CHECK(alone[i] == together[i]);
}

TEST_CASE("what was read of a model stays when fit changes it") {
  const Tensor x = uniform({kBatch, 12}, 1), y = learnable(x);
  Model model = mlp();
  model.compile({.optimizer = SGD(0.5), .loss = "binary_crossentropy"});
  (void)model(x);
  const EagerTensor before = model.variables()[0];
  const std::vector<float> was = flat({before.to_tensor()});
  (void)model.train_on_batch(x, y);
  CHECK(flat({before.to_tensor()}) == was);
  CHECK(flat({model.variables()[0].value().to_tensor()}) != was);
}

TEST_CASE("what a callback has read stays while the fit goes on") {
  struct Keeps : Callback {
    std::vector<EagerTensor> seen;
    std::vector<std::vector<float>> was;
    void on_train_batch_end(int64_t, const Logs&) override {
      seen.push_back(model().variables()[0]);
      was.push_back(flat({seen.back().to_tensor()}));
    }
  } keeps;
  const Tensor x = uniform({kBatch * 3, 12}, 1), y = learnable(x);
  Model model = mlp();
  model.compile({.optimizer = SGD(0.5), .loss = "binary_crossentropy"});
  model.fit(x, y, {.batch_size = kBatch, .epochs = 2, .verbose = 0, .callbacks = {keeps}});
  REQUIRE(keeps.seen.size() == 6);
  for (size_t i = 0; i < keeps.seen.size(); ++i) {
    CHECK(flat({keeps.seen[i].to_tensor()}) == keeps.was[i]);
    if (i > 0) CHECK(keeps.was[i] != keeps.was[i - 1]);
  }
}

TEST_CASE("free variables are trained like a layer's, some without a gradient") {
  Variable a(EagerTensor({5, -3}), {.name = "a"}), unused(EagerTensor({1}), {.name = "unused"});
  SGD optimizer(0.1);
  for (int i = 0; i < 100; ++i) {
    GradientTape tape;
    const EagerTensor loss = ops::sum(ops::square(a - EagerTensor({1, 2})));
    optimizer.apply(tape.gradient(loss, {a, unused}), {a, unused});
  }
  CHECK(std::abs(double(a.value()[0]) - 1) < 1e-5);
  CHECK(std::abs(double(a.value()[1]) - 2) < 1e-5);
  CHECK(double(unused.value()[0]) == 1);
  Variable other(EagerTensor({1}), {.name = "other"});
  CHECK(message_of([&] {
          optimizer.apply({EagerTensor({1})}, {other});
          return 0;
        }).starts_with("the optimizer \"sgd\" does not serve the variable \"other\"; it has slots for 2 variables"));
  CHECK(message_of([&] {
          optimizer.apply({EagerTensor()}, {a});
          return 0;
        }).starts_with("sgd: no variable has a gradient; the loss must depend on the variables"));
  CHECK(message_of([&] {
          optimizer.apply({EagerTensor({1, 2, 3})}, {a});
          return 0;
        }) == "sgd: the gradient of \"a\" is float32[3], but the variable float32[2]");
}

TEST_CASE("frozen layers are not trained, and a model is built by its first values") {
  Dense frozen(4, relu);
  Sequential model{frozen, Dense(1)};
  const EagerTensor x(uniform({3, 5}, 1));
  CHECK(model(x).shape() == Shape{3, 1});
  CHECK(model.trainable_variables().size() == 4);
  frozen.set_trainable(false);
  CHECK(model.trainable_variables().size() == 2);
  CHECK(model.non_trainable_variables().size() == 2);
  CHECK(flat({model(x).to_tensor()}) == flat({model.predict(uniform({3, 5}, 1))}));
}

TEST_CASE("models of several inputs and outputs, and models in models") {
  const Input a({2}), b({3});
  const SymbolicTensor both = Concatenate()({a, b});
  const Model inner({a, b}, {Dense(2)(both), Dense(1, sigmoid)(both)});
  const EagerTensor x(uniform({4, 2}, 1)), z(uniform({4, 3}, 2));
  GradientTape tape;
  const EagerTensors made = inner.call_all({x, z});
  REQUIRE(made.size() == 2);
  CHECK(made[0].shape() == Shape{4, 2});
  const EagerTensor loss = ops::mean(ops::square(made[0])) + Loss("binary_crossentropy")(ops::ones({4, 1}), made[1]);
  for (const EagerTensor& g : tape.gradient(loss, inner.trainable_variables())) CHECK_FALSE(g.is_none());
  CHECK(message_of([&] { return inner(x); }).find("2 inputs, but is called on 1") != std::string::npos);
  const Arrays planned = inner.predict({uniform({4, 2}, 1), uniform({4, 3}, 2)});
  CHECK(apart(flat({made[0].to_tensor()}), flat({planned[0]})) < 1e-6);
  CHECK(apart(flat({made[1].to_tensor()}), flat({planned[1]})) < 1e-6);
}
