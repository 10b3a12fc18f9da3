#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <algorithm>
#include <csignal>

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
  CHECK(h.steps == 30 * 16);
  const Results r = model.evaluate(x, y, {.verbose = 0});
  CHECK(r["accuracy"] > 0.9);
  const Tensor p = model.predict(x);
  CHECK(p.shape() == Shape{500, 1});
  int64_t right = 0;
  for (int64_t i = 0; i < 500; ++i) right += (p.at(i) > 0.5) == (y.at(i) > 0.5);
  CHECK(double(right) / 500 == doctest::Approx(r["accuracy"]));
}

TEST_CASE("fit: a convolutional network tells stripes from columns") {
  set_random_seed(2);
  const int64_t n = 256;
  Tensor x = uniform({n, 12, 12, 1}, 3);
  Tensor y(DType::kInt32, {n});
  Random random(4);
  for (int64_t i = 0; i < n; ++i) {
    const bool across = random.below(2);
    y.values<int32_t>()[size_t(i)] = across;
    const auto phase = int64_t(random.below(3));
    for (int64_t r = 0; r < 12; ++r)
      for (int64_t c = 0; c < 12; ++c)
        if ((across ? r : c) % 3 == phase) x.values<float>()[size_t((i * 12 + r) * 12 + c)] += 0.7f;
  }
  Sequential model{Input({12, 12, 1}), Conv2D(8, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(), Dense(2, softmax)};
  model.compile({.optimizer = Adam(5e-3), .loss = SparseCategoricalCrossentropy(), .metrics = {Accuracy()}});
  const History h = model.fit(x, y, {.epochs = 25, .verbose = 0, .validation_split = 0.25});
  CHECK(h["val_accuracy"].back() >= 0.95);
  CHECK(h["val_loss"].back() < 0.3);
}

TEST_CASE("fit: the ragged last batch counts with its own size") {
  // A model without learning: the epoch's loss is the mean over all samples, whatever the batches.
  const Tensor x = uniform({10, 3}, 1), y = uniform({10, 1}, 2);
  Sequential model{Input({3}), Dense(1)};
  model.compile({.optimizer = SGD(0), .loss = "mse", .metrics = {"mae"}});
  const double loss = model.evaluate(x, y, {.batch_size = 10, .verbose = 0})["loss"],
               mae = model.evaluate(x, y, {.batch_size = 10, .verbose = 0})["mae"];
  for (const int64_t batch : {1, 3, 4, 7, 10, 50}) {
    const History h = model.fit(x, y, {.batch_size = batch, .verbose = 0});
    CHECK(h["loss"][0] == doctest::Approx(loss).epsilon(1e-6));
    CHECK(h["mae"][0] == doctest::Approx(mae).epsilon(1e-6));
    CHECK(model.evaluate(x, y, {.batch_size = batch, .verbose = 0})["loss"] == doctest::Approx(loss).epsilon(1e-6));
    // another batch size is another kernel: sums of four terms may be added in another order
    const std::vector<float> p = flat({Tensor(model.predict(x, {.batch_size = batch}))}),
                             q = flat({Tensor(model.predict(x, {.batch_size = 1}))});
    for (size_t i = 0; i < q.size(); ++i)
      CHECK(std::abs(p[i] - q[i]) <= 8 * std::numeric_limits<float>::epsilon() * std::max(1.0f, std::abs(q[i])));
  }
}

TEST_CASE("fit: every sample is seen once in each epoch, in another order each time") {
  struct Seen : Callback {
    std::vector<double> losses;
    void on_train_batch_end(int64_t batch, const Logs& logs) override {
      losses.push_back(logs["loss"] * double(batch + 1));
    }
  } seen;
  // One sample a batch and a loss that is its own square: running sums tell which sample it was.
  Tensor x(DType::kFloat32, {8, 1});
  for (int i = 0; i < 8; ++i) x.values<float>()[size_t(i)] = float(1 << i);
  Sequential model{Input({1}), Dense(1, {.kernel_initializer = "ones"})};
  model.compile(SGD(0), "mae");
  set_random_seed(5);
  model.fit(x, Tensor(DType::kFloat32, {8, 1}), {.batch_size = 1, .epochs = 3, .verbose = 0, .callbacks = {seen}});
  REQUIRE(seen.losses.size() == 24);
  std::vector<std::vector<int>> orders;
  for (int e = 0; e < 3; ++e) {
    orders.emplace_back();
    for (int b = 0; b < 8; ++b)
      orders.back().push_back(int(seen.losses[size_t(8 * e + b)] - (b ? seen.losses[size_t(8 * e + b - 1)] : 0) + 0.5));
    auto sorted = orders.back();
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128});
  }
  CHECK(orders[0] != orders[1]);
  seen.losses.clear();
  model.fit(x, Tensor(DType::kFloat32, {8, 1}), {.batch_size = 1, .verbose = 0, .callbacks = {seen}, .shuffle = false});
  CHECK(seen.losses[0] == doctest::Approx(1));
  CHECK(seen.losses[7] == doctest::Approx(255));
}

TEST_CASE("fit: validation_split takes the last samples, before shuffling") {
  Tensor x(DType::kFloat32, {10, 1});
  for (int i = 0; i < 10; ++i) x.values<float>()[size_t(i)] = float(i);
  Sequential model{Input({1}), Dense(1, {.kernel_initializer = "ones"})};
  model.compile(SGD(0), "mae");
  const History h =
      model.fit(x, Tensor(DType::kFloat32, {10, 1}), {.batch_size = 4, .verbose = 0, .validation_split = 0.3});
  CHECK(h["loss"][0] == doctest::Approx(3));      // 0..6
  CHECK(h["val_loss"][0] == doctest::Approx(8));  // 7, 8, 9
  const History g = model.fit(
      x, Tensor(DType::kFloat32, {10, 1}),
      {.epochs = 4, .verbose = 0, .validation_data = {x, Tensor(DType::kFloat32, {10, 1})}, .validation_freq = 2});
  CHECK(g["val_loss"].size() == 2);
}

TEST_CASE("fit: steps_per_epoch goes on where the last epoch stopped, and ends with the data") {
  struct Count : Callback {
    std::vector<int64_t> steps{};
    void on_epoch_begin(int, const Logs&) override { steps.push_back(0); }
    void on_train_batch_end(int64_t, const Logs&) override { ++steps.back(); }
  } count;
  Sequential model{Input({1}), Dense(1)};
  model.compile("sgd", "mse");
  const Tensor x = uniform({10, 1}, 1), y = uniform({10, 1}, 2);
  const History h =
      model.fit(x, y, {.batch_size = 2, .epochs = 4, .verbose = 0, .callbacks = {count}, .steps_per_epoch = 2});
  CHECK(count.steps == std::vector<int64_t>{2, 2, 1, 2});  // as Keras: five batches are there
  CHECK(h.notes.size() == 1);
}

TEST_CASE("fit: a batch larger than the data trains one short batch and says so") {
  Sequential model{Input({1}), Dense(1)};
  model.compile("sgd", "mse");
  const History h = model.fit(uniform({5, 1}, 1), uniform({5, 1}, 2), {.batch_size = 32, .verbose = 0});
  CHECK(h.steps == 1);
  CHECK(h.notes ==
        std::vector<std::string>{"note: batch_size 32 is larger than the data; each epoch is one batch of 5 samples"});
}

TEST_CASE("fit: Ctrl-C ends the step, keeps the weights and says so") {
  struct Press : Callback {
    void on_train_batch_end(int64_t batch, const Logs&) override {
      if (batch == 2) std::raise(SIGINT);
    }
  };
  Sequential model{Input({1}), Dense(1)};
  model.compile("sgd", "mse");
  const Tensor x = uniform({100, 1}, 1), y = uniform({100, 1}, 2);
  const auto before = flat(model.get_weights());
  const History h = model.fit(x, y, {.batch_size = 10, .epochs = 3, .verbose = 0, .callbacks = {Press()}});
  CHECK(h.interrupted);
  CHECK(h.steps == 3);
  CHECK(model.optimizer().iterations() == 3);
  CHECK(flat(model.get_weights()) != before);
  CHECK(h.notes.back() == "interrupted: 3 steps taken; the weights are those after the last of them");
  // A loop of trainings ends with the one that was interrupted, unless the program says otherwise.
  CHECK(message_of([&] {
          model.fit(x, y, {.verbose = 0});
        }).starts_with("fit: the training before this one was interrupted by Ctrl-C; look at History::interrupted"));
  clear_interrupt();
  CHECK(!model.fit(x, y, {.verbose = 0}).interrupted);
}

TEST_CASE("fit: several inputs and outputs, each with its loss, weight and metrics") {
  set_random_seed(6);
  const Input a({3}), b({2});
  const auto joint = Dense(8, relu)(Concatenate()({a, b}));
  Model model({a, b}, {Dense(1, {.name = "size"})(joint), Dense(3, softmax, {.name = "kind"})(joint)});
  model.compile({.optimizer = "adam",
                 .loss = {"mse", "sparse_categorical_crossentropy"},
                 .metrics = MetricList::each_output({{"mae"}, {"accuracy"}}),
                 .loss_weights = {0.5, 2}});
  const Arrays x{uniform({20, 3}, 1), uniform({20, 2}, 2)}, y{uniform({20, 1}, 3), classes({20}, 3, 4)};
  const History h = model.fit(x, y, {.batch_size = 20, .verbose = 0});
  std::vector<std::string> names;
  for (const auto& [n, v] : h.history) names.push_back(n);
  CHECK(names == std::vector<std::string>{"loss", "size_loss", "kind_loss", "size_mae", "kind_accuracy"});
  CHECK(h["loss"][0] == doctest::Approx(0.5 * h["size_loss"][0] + 2 * h["kind_loss"][0]));
  CHECK(model.predict(x).size() == 2);
}

TEST_CASE("compile: losses, weights and metrics by the outputs' names are those by position") {
  const Arrays x{uniform({20, 3}, 1), uniform({20, 2}, 2)}, y{uniform({20, 1}, 3), classes({20}, 3, 4)};
  const auto made = [] {
    set_random_seed(6);
    const Input a({3}), b({2});
    const auto joint = Dense(8, relu)(Concatenate()({a, b}));
    return Model({a, b}, {Dense(1, {.name = "size"})(joint), Dense(3, softmax, {.name = "kind"})(joint)}, "two");
  };
  Model named = made(), ordered = made();
  CHECK(named.output_names() == std::vector<std::string>{"size", "kind"});
  named.compile({.optimizer = "adam",
                 .loss = {{"kind", "sparse_categorical_crossentropy"}, {"size", "mse"}},
                 .metrics = {{"kind", {"accuracy"}}, {"size", {"mae", "mse"}}},
                 .loss_weights = {{"kind", 2}, {"size", 0.5}}});
  ordered.compile({.optimizer = "adam",
                   .loss = {"mse", "sparse_categorical_crossentropy"},
                   .metrics = MetricList::each_output({{"mae", "mse"}, {"accuracy"}}),
                   .loss_weights = {0.5, 2}});
  const FitOptions two_epochs{.epochs = 2, .verbose = 0, .shuffle = false};
  CHECK(named.fit(x, y, two_epochs).history == ordered.fit(x, y, two_epochs).history);
  // Metrics may leave outputs out; one alone needs no list.
  named.compile({.optimizer = "adam", .loss = {{"kind", Loss()}, {"size", "mse"}}, .metrics = {{"size", "mae"}}});
  std::vector<std::string> told;
  for (const auto& [name, value] : named.evaluate(x, y, {.verbose = 0})) told.push_back(name);
  CHECK(told == std::vector<std::string>{"loss", "size_mae"});
  const auto refused = [&](LossList loss, LossWeights weights = {}) {
    return message_of([&] { named.compile({.loss = std::move(loss), .loss_weights = std::move(weights)}); });
  };
  CHECK(refused({{"size", "mse"}, {"sort", "mse"}}) ==
        "compile: loss names the output \"sort\", which the model does not have; its outputs are size, kind");
  CHECK(refused({{"size", "mse"}, {"size", "mse"}}).starts_with("compile: loss names the output \"size\" twice"));
  CHECK(refused({{"size", "mse"}}) ==
        "compile: loss leaves out the output \"kind\"; an output without a loss has Loss()");
  CHECK(refused("mse", {{"size", 1}}) == "compile: loss_weights leaves out the output \"kind\"; name each output");
}

TEST_CASE("fit: data of other types is converted when a batch is staged") {
  const Tensor x = uniform({16, 4}, 1), y = classes({16}, 3, 2);
  const auto train = [&](const Tensor& xs, const Tensor& ys) {
    set_random_seed(7);
    Sequential model{Input({4}), Dense(3, softmax)};
    model.compile("sgd", "sparse_categorical_crossentropy");
    return model.fit(xs, ys, {.verbose = 0})["loss"][0];
  };
  const double loss = train(x, y);
  CHECK(train(x.astype(DType::kFloat64), y.astype(DType::kInt64)) == loss);
  CHECK(train(x, y.astype(DType::kFloat32)) == loss);
  CHECK(train(x, y.astype(DType::kUInt8).reshaped({16, 1})) == loss);
}

TEST_CASE("fit: a frozen layer keeps its weights, and its batch statistics") {
  Sequential model{Input({4}), Dense(5, relu, {.name = "frozen"}), BatchNormalization({.name = "still"}), Dense(1)};
  model.get_layer("frozen").set_trainable(false);
  model.get_layer("still").set_trainable(false);
  model.compile("sgd", "mse");
  const auto frozen = flat(model.get_layer("frozen").get_weights()),
             still = flat(model.get_layer("still").get_weights()), all = flat(model.get_weights());
  model.fit(uniform({16, 4}, 1), uniform({16, 1}, 2), {.verbose = 0});
  CHECK(flat(model.get_layer("frozen").get_weights()) == frozen);
  CHECK(flat(model.get_layer("still").get_weights()) == still);
  CHECK(flat(model.get_weights()) != all);
}

TEST_CASE("fit: the learning rate can be changed between steps, and steps are counted") {
  Sequential model{Input({1}), Dense(1)};
  const SGD sgd(0.1);
  model.compile(sgd, "mse");
  const Tensor x = uniform({4, 1}, 1), y = uniform({4, 1}, 2);
  model.train_on_batch(x, y);
  Optimizer(sgd).set_learning_rate(0);
  const auto still = flat(model.get_weights());
  model.train_on_batch(x, y);
  CHECK(flat(model.get_weights()) == still);
  CHECK(sgd.iterations() == 2);
  CHECK(model.optimizer().learning_rate() == 0);
  Sequential other{Input({1}), Dense(1)};
  other.compile(sgd, "mse");
  CHECK(message_of([&] {
          other.train_on_batch(x, y);
        }).starts_with("the optimizer \"sgd\" already trains other weights"));
}

TEST_CASE("predict: a layer called as if training drops values, in a model that was never compiled") {
  const Input in({1000});
  Model model({in}, {Dropout(0.25)(in, {.training = true})});
  Tensor ones(DType::kFloat32, {1, 1000});
  std::ranges::fill(ones.values<float>(), 1.f);
  const Tensor out = model.predict(ones);
  int64_t dropped = 0;
  for (const float v : out.values<float>()) dropped += v == 0;
  CHECK(std::abs(double(dropped) - 250) < 5 * std::sqrt(1000 * 0.25 * 0.75));  // five sigmas of a binomial distribution
}
