// "Flat" as a test: the ledger of holdings and the resident memory of the process, over steps and over models.
#include <doctest/doctest.h>

#include "base/segment.h"
#include "support/written.h"
#include "train/support.h"

using namespace millpond;

namespace {
Bytes held() {
  Bytes sum;
  each_holding([&](const std::string&, Bytes b) { sum += b; });
  return sum;
}

}  // namespace

TEST_CASE("flat: twenty thousand steps take no byte and no page") {
  set_random_seed(1);
  Sequential model{Input({12, 12, 3}), Conv2D(8, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(),
                   Dropout(0.2),       Dense(16, relu),         BatchNormalization(), Dense(4, softmax)};
  model.compile("adam", "sparse_categorical_crossentropy", {"accuracy"});
  const Tensor x = uniform({100, 12, 12, 3}, 1), y = classes({100}, 4, 2);
  const auto train = [&](int epochs) {
    model.fit(x, y,
              {.batch_size = 10, .epochs = epochs, .verbose = 0, .validation_data = {x, y}, .validation_freq = 10});
  };  // and drops the history
  train(10);  // makes the programs, which stay, among what it drops
  // Each drops all that it takes, as the next ones do. Where the heap begins depends on the length of the program's path,
  // and with some of them it takes the second one until every block has found a place that fits.
  train(1000);
  train(1000);
  written();
  const Bytes before = held();
  const Written pages = written();
  train(1000);
  train(1000);
  const Bytes after = held();
  const Written now = written();  // before CHECK, which takes memory
  CHECK(after == before);
  if (!kExactPages) return;
  CHECK(now.heap <= pages.heap);
  CHECK(now.stack <= pages.stack);
  CHECK(now.files <= pages.files);
  CHECK(now.other <= pages.other);
}

TEST_CASE("flat: steps that count metrics, clip and run a rule as an expression take no byte and no page") {
  set_random_seed(1);
  Sequential model{Input({8}), Dense(16, relu), Dense(1, sigmoid)};
  model.compile({.optimizer = Nadam(0.001, {.global_clipnorm = 1}),
                 .loss = "binary_crossentropy",
                 .metrics = {"accuracy", AUC(), Precision(), Recall()}});
  const Tensor x = uniform({105, 8}, 1), y = learnable(x);
  const auto train = [&](int epochs) {
    model.fit(x, y,
              {.batch_size = 10, .epochs = epochs, .verbose = 0, .validation_data = {x, y}, .validation_freq = 10});
  };
  train(10);
  train(300);
  written();
  const Bytes before = held();
  const Written pages = written();
  train(300);
  const Bytes after = held();
  const Written now = written();
  CHECK(after == before);
  if (!kExactPages) return;
  CHECK(now.heap <= pages.heap);
  CHECK(now.other <= pages.other);
}

TEST_CASE("flat: steps that make values again take no byte and no page") {
  set_random_seed(1);
  std::vector<Layer> layers{Input({32})};
  for (int i = 0; i < 12; ++i) layers.insert(layers.end(), {Dense(32, relu), BatchNormalization(), Dropout(0.1)});
  layers.push_back(Dense(1, sigmoid));
  Sequential model(layers);
  model.compile({.optimizer = "adam", .loss = "binary_crossentropy", .metrics = {"accuracy"}, .memory_target = 1_B});
  const Tensor x = uniform({200, 32}, 1), y = learnable(x);
  CHECK(!model.plan({.batch = 100, .largest_batch = false}).recomputed.empty());
  const auto train = [&](int epochs) { model.fit(x, y, {.batch_size = 100, .epochs = epochs, .verbose = 0}); };
  train(10);
  train(200);
  written();
  const Bytes before = held();
  const Written pages = written();
  train(200);
  const Bytes after = held();
  const Written now = written();
  CHECK(after == before);
  if (!kExactPages) return;
  CHECK(now.heap <= pages.heap);
  CHECK(now.other <= pages.other);
}

TEST_CASE("flat: an LSTM over a thousand steps trains in the memory of its plan, without a byte or a page more") {
  set_random_seed(1);
  Sequential model{Input({1000, 8}), LSTM(16), Dense(1)};
  model.compile("adam", "mse");
  const Tensor x = uniform({16, 1000, 8}, 1), y = uniform({16, 1}, 2);
  const MemoryPlan plan = model.plan({.batch = 8, .threads = 1, .evaluate = false});
  const auto train = [&](int epochs) {
    model.fit(x, y, {.batch_size = 8, .epochs = epochs, .verbose = 0, .threads = 1});
  };
  train(3);
  train(10);
  written();
  const Bytes before = held();
  const Written pages = written();
  train(10);
  const Bytes after = held();
  const Written now = written();
  CHECK(after == before);
  Bytes arena;
  each_holding([&](const std::string& account, Bytes b) { arena += account == "arena" ? b : Bytes{}; });
  CHECK(arena >= plan.arena);
  CHECK(arena.value <= plan.arena.value + 4096);  // whole pages
  if (!kExactPages) return;
  CHECK(now.heap <= pages.heap);
  CHECK(now.other <= pages.other);
}

TEST_CASE("flat: two hundred different models end where the third one ended") {
  const auto one = [](int i) {
    const int64_t width = 10 + i % 37, filters = 3 + i % 11;
    Sequential model{Input({8 + i % 5, 9, 2}), Conv2D(filters, {2, 3}, relu),
                     MaxPooling2D({2, 2}),     Flatten(),
                     Dense(width, relu),       Dense(3, softmax)};
    model.compile(i % 2 ? Optimizer("adam") : Optimizer(SGD(0.01, {.momentum = 0.9})),
                  "sparse_categorical_crossentropy", {"accuracy"});
    const int64_t n = 20 + i % 13;
    const Tensor x = uniform({n, 8 + i % 5, 9, 2}, uint64_t(i)), y = classes({n}, 3, uint64_t(i));
    model.fit(x, y, {.batch_size = 8, .epochs = 2, .verbose = 0});
    (void)model.predict(x);
  };
  Bytes third;
  int64_t pages = 0;
  for (int i = 0; i < 200; ++i) {
    one(i);
    if (i == 2) third = held(), pages = written().sum();
  }
  CHECK(held() == third);
  if (kExactPages) CHECK(written().sum() - pages <= 512);  // the allocator's own: pages, not a slope
}
