// Models in several threads: what each thread gets is what it would get alone, and what cannot be is refused.
#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

#include "base/segment.h"
#include "base/team.h"
#include "far/far.h"
#include "support.h"

using namespace millpond;

namespace {

// Runs f(0), f(1), ... at once. An exception of one is thrown on when all have ended.
void together(int threads, const std::function<void(int)>& f) {
  std::vector<std::exception_ptr> failed(size_t(threads), nullptr);
  std::barrier begin(threads);
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      begin.arrive_and_wait();
      try {
        f(i);
      } catch (...) {
        failed[size_t(i)] = std::current_exception();
      }
    });
  for (std::thread& t : all) t.join();
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
}

// A model whose product is worth sharing between two threads.
std::vector<float> train_one(uint64_t seed, int threads) {
  const SeedScope own(seed);
  Sequential model{Input({200}), Dense(256, relu), Dropout(0.2), Dense(64, relu), Dense(1)};
  model.compile(Adam(1e-3), "mse");
  const Tensor x = uniform({128, 200}, seed), y = uniform({128, 1}, seed + 1);
  model.fit(x, y, {.batch_size = 32, .epochs = 2, .verbose = 0, .threads = threads});
  std::vector<float> all = flat(model.get_weights());
  const std::vector<float> predicted = flat(model.predict(x, {.threads = threads}));
  all.insert(all.end(), predicted.begin(), predicted.end());
  return all;
}

Bytes held() {
  Bytes sum;
  each_holding([&](const std::string&, Bytes b) { sum += b; });
  return sum;
}

Sequential wide_model() {
  Sequential model{Input({64}), Dense(256, relu), Dense(256, relu), Dense(3, softmax)};
  model.compile("sgd", "sparse_categorical_crossentropy");
  return model;
}

}  // namespace

TEST_CASE(
    "threads: models built, trained and dropped by several threads at once have the bits of models made one after the "
    "other") {
  constexpr int kThreads = 8, kEach = 6;
  for (const int threads : {1, 2}) {
    std::vector<std::vector<float>> alone;
    for (int i = 0; i < kThreads * kEach; ++i) alone.push_back(train_one(uint64_t(i), threads));
    const Bytes before = held();
    together(kThreads, [&](int t) {
      for (int i = 0; i < kEach; ++i) {
        const int n = t * kEach + i;
        CHECK(train_one(uint64_t(n), threads) == alone[size_t(n)]);
      }
    });
    CHECK(held() == before);
  }
}

TEST_CASE("threads: one model predicts and evaluates in several threads at once, each row right") {
  Sequential model = wide_model();
  const Tensor x = uniform({300, 64}, 1), y = classes({300}, 3, 2);
  model.fit(x, y, {.verbose = 0});
  std::vector<std::vector<float>>
      wanted;  // of each size of batch: the products of two sizes may differ in the last bit
  for (int t = 0; t < 6; ++t) wanted.push_back(flat(model.predict(x, {.batch_size = 32 + t})));
  const double loss = model.evaluate(x, y, {.verbose = 0})["loss"];
  const Model& shared = model;
  together(6, [&](int t) {
    for (int i = 0; i < 20; ++i) {
      CHECK(flat(shared.predict(x, {.batch_size = 32 + t})) == wanted[size_t(t)]);
      if (i % 5 == 0) CHECK(shared.evaluate(x, y, {.verbose = 0})["loss"] == loss);
    }
  });
  CHECK(model.memory().account("arena") <= Bytes{16 << 20});  // as many workspaces as processors at most
}

TEST_CASE("threads: a model without an input shape may be built by any of several threads that predict first") {
  for (int round = 0; round < 10; ++round) {
    Sequential model{Dense(16, relu), Dense(2)};
    const Tensor x = uniform({20, 5}, 1);
    std::vector<std::vector<float>> got(4);
    together(4, [&](int t) { got[size_t(t)] = flat(model.predict(x)); });
    for (const auto& g : got) CHECK(g == got[0]);
  }
}

namespace {
// Calls `meanwhile` from another thread in the middle of a training.
struct Meanwhile : Callback {
  explicit Meanwhile(std::function<void()> f) : call(std::move(f)) {}
  void on_train_batch_end(int64_t batch, const Logs&) override {
    if (batch == 1) std::thread(call).join();
  }
  std::function<void()> call;
};
}  // namespace

TEST_CASE(
    "threads: two fits of one model are refused, and so is whatever reads weights that another thread is changing") {
  Sequential model({Input({64}), Dense(3, softmax)}, "shared");
  model.compile("sgd", "sparse_categorical_crossentropy");
  const Tensor x = uniform({100, 64}, 1), y = classes({100}, 3, 2);
  std::vector<std::string> said;
  const auto tell = [&](auto&& f) { said.push_back(message_of(f)); };
  model.fit(x, y, {.verbose = 0, .callbacks = {Meanwhile([&] {
                                   tell([&] { model.fit(x, y, {.verbose = 0}); });
                                   tell([&] { (void)model.predict(x); });
                                   tell([&] { (void)model.get_weights(); });
                                   tell([&] { model.compile("sgd", "mse"); });
                                 })}});
  REQUIRE(said.size() == 4);
  CHECK(said[0] ==
        "fit: the model \"shared\" is being changed by fit in another thread; several models may train at once, but "
        "one model is trained by one thread at a time");
  CHECK(said[1] ==
        "predict: the model \"shared\" is being changed by fit in another thread; wait until that has returned, or "
        "call this from its callbacks");
  CHECK(said[2].starts_with("get_weights: the model \"shared\" is being changed by fit in another thread"));
  CHECK(said[3] ==
        "compile: the model \"shared\" is in use, by fit in another thread; call compile before or after it");
  CHECK(model.fit(x, y, {.verbose = 0}).steps == 4);  // nothing of it stays
}

TEST_CASE("threads: a callback may predict, evaluate, set weights and fit again, but not compile") {
  Sequential model({Input({4}), Dense(8, relu), Dense(1)}, "nested");
  model.compile("sgd", "mse");
  const Tensor x = uniform({20, 4}, 1), y = uniform({20, 1}, 2);
  struct Nested : Callback {
    Tensor x, y;
    int fits = 0;
    std::string said;
    void on_epoch_end(int, const Logs&) override {
      CHECK(model().predict(x)[0].shape() == Shape{20, 1});
      CHECK(model().evaluate(x, y, {.verbose = 0}).has("loss"));
      model().set_weights(model().get_weights());
      if (fits++ == 0) CHECK(model().fit(x, y, {.batch_size = 7, .verbose = 0}).steps == 3);
      said = message_of([&] { model().compile("adam", "mse", "mae"); });
    }
  } nested;
  nested.x = x, nested.y = y;
  const History h = model.fit(x, y, {.batch_size = 5, .epochs = 2, .verbose = 0, .callbacks = {nested}});
  CHECK(h.steps == 8);
  CHECK(nested.said ==
        "compile: the model \"nested\" is in use, by fit, whose callback calls this; call compile before or after it");
  CHECK(message_of([&] { nested.model(); }) ==
        "Callback::model(): there is a model only while fit, evaluate or predict calls a hook");
}

TEST_CASE("threads: a function that is handed predictions may predict with the same model") {
  Sequential model = wide_model();
  const Tensor x = uniform({100, 64}, 1);
  const std::vector<float> wanted = flat(model.predict(x, {.batch_size = 30}));
  std::vector<float> got;
  (void)model.predict(x, {.batch_size = 30, .output = [&](int64_t first, std::span<const Tensor> p) {
                            for (const float v : p[0].values<float>()) got.push_back(v);
                            for (int64_t batch = 1; batch < 12; ++batch)
                              CHECK(model.predict(x, {.batch_size = batch, .steps = 1})[0].values<float>()[0] ==
                                    doctest::Approx(wanted[0]));
                            (void)first;
                          }});
  CHECK(got == wanted);
}

TEST_CASE("threads: a training for which no processor is left runs alone and says so") {
  if (test::on_far()) return;            // its steps share no threads, so none are asked for
  const int all = usable_threads() + 1;  // more than there are: only a run that is alone gets them
  const Tensor x = uniform({64, 200}, 1), y = uniform({64, 1}, 2);
  const auto make = [] {
    Sequential m{Input({200}), Dense(512, relu), Dense(1)};
    m.compile("sgd", "mse");
    return m;
  };
  Sequential first = make(), second = make();
  History inner;
  const History outer = first.fit(
      x, y,
      {.verbose = 0,
       .callbacks = {Meanwhile([&] { inner = second.fit(x, y, {.epochs = 3, .verbose = 0, .threads = all}); })},
       .threads = all});
  CHECK(outer.notes.empty());
  REQUIRE(inner.notes.size() == 1);
  CHECK(inner.notes[0].starts_with(
      "note: other runs of this process had its processors: 3 of 3 epochs ran in one thread, not in "));
  CHECK(second.fit(x, y, {.verbose = 0, .threads = all}).notes.empty());
}
