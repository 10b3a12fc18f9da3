#include <doctest/doctest.h>

#include "train/support.h"

using namespace millpond;

namespace {
struct Journal : Callback {
  std::string text{};
  void on_train_begin(const Logs&) override { text += "T("; }
  void on_train_end(const Logs& logs) override { text += logs.has("loss") ? ")T" : ")?"; }
  void on_epoch_begin(int e, const Logs&) override { text += "E" + std::to_string(e) + "["; }
  void on_epoch_end(int, const Logs& logs) override { text += logs.has("val_loss") ? "]v" : "]"; }
  void on_train_batch_begin(int64_t b, const Logs&) override { text += "<" + std::to_string(b); }
  void on_train_batch_end(int64_t, const Logs&) override { text += ">"; }
  void on_test_begin(const Logs&) override { text += "V("; }
  void on_test_end(const Logs&) override { text += ")V"; }
  void on_test_batch_end(int64_t, const Logs&) override { text += "."; }
  void on_predict_batch_end(int64_t, const Logs&) override { text += "p"; }
};
Sequential small() {
  Sequential model{Input({2}), Dense(1)};
  model.compile("sgd", "mse");
  return model;
}
}  // namespace

TEST_CASE("callbacks: hooks come in Keras's order") {
  Journal j;
  Sequential model = small();
  const Tensor x = uniform({5, 2}, 1), y = uniform({5, 1}, 2);
  model.fit(x, y, {.batch_size = 3, .epochs = 2, .verbose = 0, .callbacks = {j}, .validation_data = {x, y}});
  CHECK(j.text == "T(E0[<0><1>V(..)V]vE1[<0><1>V(..)V]v)T");
  j.text.clear();
  (void)model.predict(x, {.batch_size = 2, .callbacks = {j}});
  CHECK(j.text == "ppp");
  j.text.clear();
  model.evaluate(x, y, {.verbose = 0, .callbacks = {j}});
  CHECK(j.text == "V(.)V");
}

TEST_CASE("callbacks: a temporary is kept, a variable is borrowed, a pointer is shared") {
  Sequential model = small();
  const Tensor x = uniform({5, 2}, 1), y = uniform({5, 1}, 2);
  Journal borrowed;
  const auto shared = std::make_shared<Journal>();
  model.fit(x, y, {.verbose = 0, .callbacks = {Journal(), borrowed, shared}});
  CHECK(borrowed.text == shared->text);
  CHECK(!borrowed.text.empty());
}

TEST_CASE("callbacks: stop_training ends after the batch or the epoch that asks for it") {
  struct Stop : Callback {
    bool in_batch;
    explicit Stop(bool b) : in_batch(b) {}
    void on_train_batch_end(int64_t b, const Logs&) override {
      if (in_batch && b == 1) model().stop_training();
    }
    void on_epoch_end(int e, const Logs&) override {
      if (e == 1) model().stop_training();
    }
  };
  Sequential model = small();
  const Tensor x = uniform({6, 2}, 1), y = uniform({6, 1}, 2);
  CHECK(model.fit(x, y, {.batch_size = 1, .epochs = 9, .verbose = 0, .callbacks = {Stop(true)}}).steps == 2);
  CHECK(model.fit(x, y, {.batch_size = 1, .epochs = 9, .verbose = 0, .callbacks = {Stop(false)}}).steps == 12);
}

TEST_CASE("callbacks: they see the live weights, and may predict in the middle of training") {
  struct Look : Callback {
    std::vector<std::vector<float>> weights{};
    Tensor x;
    void on_train_batch_end(int64_t b, const Logs&) override {
      weights.push_back(flat(model().get_weights()));
      (void)model().predict(x, {.batch_size = b + 1});  // another program each time: more than are kept
    }
  } look;
  Sequential model = small();
  look.x = uniform({20, 2}, 3);
  const Tensor x = uniform({12, 2}, 1), y = uniform({12, 1}, 2);
  set_random_seed(1);
  model.fit(x, y, {.batch_size = 1, .verbose = 0, .callbacks = {look}, .shuffle = false});
  REQUIRE(look.weights.size() == 12);
  CHECK(look.weights[0] != look.weights[1]);
  CHECK(look.weights[11] == flat(model.get_weights()));
}
