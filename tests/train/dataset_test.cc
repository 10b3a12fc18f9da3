// Training from datasets: the same as from arrays, with its own batches, waits told, and data that runs out.
#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "io/npy.h"
#include "train/support.h"

using namespace millpond;

namespace {
Sequential small() {
  Sequential model{Input({10}), Dense(16, relu), Dense(1, sigmoid)};
  model.compile({.optimizer = Adam(1e-2), .loss = "binary_crossentropy", .metrics = {"accuracy"}});
  return model;
}
struct Batches : Callback {
  std::vector<double> losses;
  void on_train_batch_end(int64_t, const Logs& logs) override { losses.push_back(logs["loss"]); }
};
}  // namespace

TEST_CASE(
    "fit from a dataset is fit from the arrays, to the bit, with and without queues, ragged last batch included") {
  const Tensor x = uniform({210, 10}, 2), y = learnable(x);
  const auto train = [&](auto&& fit) {
    set_random_seed(7);
    Sequential model = small();
    const History h = fit(model);
    return std::pair(h["loss"], flat(model.get_weights()));
  };
  const auto arrays = train([&](Model& m) { return m.fit(x, y, {.epochs = 3, .verbose = 0, .shuffle = false}); });
  const Dataset direct = Dataset::from_arrays(x, y).batch(32), queued = direct.prefetch(2);
  const Dataset mapped = Dataset::from_arrays(x, y).map([](Element&) {}, {.parallel = 2}).batch(32).prefetch(AUTOTUNE);
  const Dataset doubles = Dataset::from_arrays(x.astype(DType::kFloat64), y.astype(DType::kFloat64)).batch(32);
  for (const Dataset& d : {direct, queued, mapped, doubles})
    CHECK(train([&](Model& m) { return m.fit(d, {.epochs = 3, .verbose = 0}); }) == arrays);
}

TEST_CASE("fit from a dataset learns, validates, and is evaluated and predicted from datasets") {
  set_random_seed(1);
  const Tensor x = uniform({500, 10}, 2), y = learnable(x);
  Sequential model = small();
  const Dataset train = Dataset::from_arrays(x, y).skip(100).shuffle().batch(32).prefetch(),
                test = Dataset::from_arrays(x, y).take(100).batch(30);
  const History h = model.fit(train, {.epochs = 30, .verbose = 0, .validation = test});
  CHECK(h["loss"].back() < 0.5 * h["loss"].front());
  CHECK(h["val_accuracy"].back() > 0.85);
  CHECK(h.steps == 30 * 13);
  CHECK(h.data.budget > 0);
  CHECK(h.data.peak <= h.data.budget);
  CHECK(h.data.table.find("shuffle(all 400, permuted numbers)") != std::string::npos);
  CHECK(model.evaluate(test, {.verbose = 0})["loss"] == doctest::Approx(h["val_loss"].back()).epsilon(1e-6));
  CHECK(model.evaluate(test, {.verbose = 0})["loss"] ==
        doctest::Approx(model.evaluate(x.rows(0, 100), y.rows(0, 100), {.batch_size = 30, .verbose = 0})["loss"])
            .epsilon(1e-6));
  const Tensor from_arrays = model.predict(x, {.batch_size = 64}),
               from_dataset = model.predict(Dataset::from_arrays(x, y).batch(64)),
               from_x = model.predict(Dataset::from_arrays(x).batch(64));
  CHECK(flat({from_arrays}) == flat({from_dataset}));
  CHECK(flat({from_arrays}) == flat({from_x}));
}

TEST_CASE("predict streams to a file and to a function, and keeps nothing") {
  const auto folder = std::filesystem::temp_directory_path() / ("millpond_predict_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "p.npy").string();
  const Tensor x = uniform({100, 10}, 2);
  Sequential model = small();
  const Tensor kept = model.predict(x, {.batch_size = 32});
  int64_t rows = 0;
  std::vector<float> got;
  const Arrays nothing =
      model.predict(Dataset::from_arrays(x).batch(32),
                    {.output_files = {file}, .output = [&](int64_t first, std::span<const Tensor> out) {
                       CHECK(first == rows);
                       rows += out[0].shape()[0];
                       for (const float v : out[0].values<float>()) got.push_back(v);
                     }});
  CHECK(nothing.empty());
  CHECK(rows == 100);
  CHECK(got == flat({kept}));
  const Tensor read = io::read_npy(file, "data/test");
  CHECK(read.shape() == Shape{100, 1});
  CHECK(flat({read}) == got);
  CHECK(model.predict(x, {.batch_size = 32, .output_files = {file}}).empty());
  CHECK(flat({io::read_npy(file, "data/test")}) == got);
  std::filesystem::remove_all(folder);
}

TEST_CASE("steps_per_epoch goes on where the last epoch stopped; data that runs out is told, and begins anew") {
  const Tensor x = uniform({64, 10}, 2), y = learnable(x);
  Sequential model = small();
  const Dataset d = Dataset::from_arrays(x, y).batch(8);
  History h = model.fit(d.repeat(), {.epochs = 3, .verbose = 0, .steps_per_epoch = 20});
  CHECK(h.steps == 60);
  for (const std::string& note : h.notes) CHECK(note.find("ran out") == std::string::npos);
  h = model.fit(d, {.epochs = 3, .verbose = 0, .steps_per_epoch = 5});
  CHECK(h.steps == 5 + 3 + 5);
  REQUIRE_FALSE(h.notes.empty());
  CHECK(h.notes[0].find("ran out after 3 batches of this epoch, fewer than steps_per_epoch 5") != std::string::npos);
  CHECK(message_of([&] { model.fit(d.repeat(), {.verbose = 0}); }) ==
        "fit: the dataset has no end; give steps_per_epoch");
}

TEST_CASE("each epoch is shuffled anew, and a training that goes on later sees the same epochs") {
  const Tensor x = uniform({64, 10}, 2), y = learnable(x);
  const auto losses = [&](int first, int epochs) {
    set_random_seed(3);
    Sequential model{Input({10}), Dense(1)};
    model.compile(SGD(0), "mse");
    Batches seen;
    model.fit(Dataset::from_arrays(x, y).shuffle({.seed = 4}).batch(8).prefetch(2),
              {.epochs = epochs, .verbose = 0, .callbacks = {seen}, .initial_epoch = first});
    return seen.losses;
  };
  const std::vector<double> all = losses(0, 3), later = losses(1, 3);
  REQUIRE(all.size() == 24);
  REQUIRE(later.size() == 16);
  CHECK(std::vector(all.begin() + 8, all.end()) == later);
  CHECK(std::vector(all.begin(), all.begin() + 8) != std::vector(all.begin() + 8, all.begin() + 16));
}

TEST_CASE("time spent on waiting for data is told, with the stage") {
  const Tensor x = uniform({160, 10}, 2), y = learnable(x);
  Sequential model = small();
  const auto slow = [](Element&) { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
  const History h = model.fit(Dataset::from_arrays(x, y).map(slow, {.name = "sleepy"}).batch(16).prefetch(2),
                              {.epochs = 2, .verbose = 0});
  CHECK(h.data.share > 0.5);
  CHECK(h.data.slowest == "sleepy");
  REQUIRE_FALSE(h.notes.empty());
  CHECK(h.notes.back().find("the slowest stage is sleepy") != std::string::npos);
}

TEST_CASE("what does not fit the model is told before the first step, bad values with their batch") {
  Sequential model = small();
  const Tensor x = uniform({64, 10}, 2), y = learnable(x), wide = uniform({64, 11}, 2);
  CHECK(message_of([&] { model.fit(Dataset::from_arrays(x, y), {.verbose = 0}); }).find("batch(n)") !=
        std::string::npos);
  CHECK(message_of([&] { model.fit(Dataset::from_arrays(x).batch(8), {.verbose = 0}); }).find("has 1 outputs") !=
        std::string::npos);
  CHECK(message_of([&] { model.fit(Dataset::from_arrays(wide, y).batch(8), {.verbose = 0}); }).find("[11]") !=
        std::string::npos);
  CHECK(message_of([&] {
          model.fit(Dataset::from_arrays({x, y, y}).batch(8), {.verbose = 0});
        }).find("weights of samples") != std::string::npos);
  CHECK(message_of([&] {
          model.fit(Dataset::from_arrays(x, y).take(0).batch(8), {.verbose = 0});
        }).find("no elements") != std::string::npos);
  Tensor bad = uniform({64, 10}, 2);
  bad.values<float>()[37 * 10 + 3] = std::numeric_limits<float>::quiet_NaN();
  for (const Dataset& d : {Dataset::from_arrays(bad, y).batch(8), Dataset::from_arrays(bad, y).batch(8).prefetch(2)}) {
    const std::string text = message_of([&] { model.fit(d, {.verbose = 0}); });
    CAPTURE(text);
    CHECK(text.find("row 5 of x0, value 3 is NaN") != std::string::npos);
    CHECK(text.find("batch") != std::string::npos);
  }
}

TEST_CASE("halves that are gathered straight into the model's input are refused when not finite; the largest pass") {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    CAPTURE(to_string(half));
    Sequential model{Input({10}, half), Dense(1)};
    model.compile("sgd", "mse");
    const auto batches = [&](float value) {
      Tensor x = uniform({64, 10}, 2);
      x.values<float>()[37 * 10 + 3] = value;
      return Dataset::from_arrays(x.astype(half), learnable(uniform({64, 10}, 2))).batch(8);
    };
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
      const std::string found = std::string("row 5 of x0, value 3 is ") + (std::isnan(bad) ? "NaN" : "infinite");
      for (const std::string& text : {message_of([&] { model.fit(batches(bad), {.verbose = 0}); }),
                                      message_of([&] { model.evaluate(batches(bad), {.verbose = 0}); })}) {
        CAPTURE(text);
        CHECK(text.find(found) != std::string::npos);
      }
    }
    const float largest = half == DType::kFloat16 ? 65504.f : 0x1.fep127f;
    CHECK_NOTHROW(model.evaluate(batches(largest), {.verbose = 0}));
    CHECK_NOTHROW(model.evaluate(batches(-largest), {.verbose = 0}));
  }
}

TEST_CASE("an error in a worker ends fit with stage and element, and the model can be trained on") {
  Sequential model = small();
  const Tensor x = uniform({64, 10}, 2), y = learnable(x);
  const auto fails = [](Element&, Buffers& b) {
    if (b.index() == 40) throw Error(Code::kValue, "this image is broken");
  };
  const std::string text = message_of([&] {
    model.fit(Dataset::from_arrays(x, y).map(fails, {.parallel = 2, .name = "decode"}).batch(8).prefetch(2),
              {.verbose = 0});
  });
  CHECK(text.find("this image is broken") != std::string::npos);
  CHECK(text.find("decode") != std::string::npos);
  CHECK(text.find("40") != std::string::npos);
  CHECK(model.fit(Dataset::from_arrays(x, y).batch(8), {.verbose = 0}).steps == 8);
}
