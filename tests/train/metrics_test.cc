// Metrics that count over an epoch: AUC, Precision, Recall. That they are Keras's is tested by tests/parity.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "base/format.h"
#include "millpond/millpond.h"
#include "train/model.h"

namespace millpond {
namespace {

// A model that gives back its input: predictions are the data.
Sequential echo(const MetricList& metrics, const char* name = "echo") {
  Sequential model({Input({1}), Dense(1, {.use_bias = false})}, name);
  model.compile({.optimizer = SGD(0), .loss = "mse", .metrics = metrics});
  model.set_weights({Tensor::of({1.f}, {1, 1})});
  return model;
}

struct Answers {
  Tensor p, y;
};
// Some answers above and some below a half, right and wrong, `samples` of them, never on a threshold.
Answers answers(int64_t samples, unsigned seed = 1) {
  Answers a{Tensor(DType::kFloat32, {samples, 1}), Tensor(DType::kFloat32, {samples, 1})};
  for (int64_t i = 0; i < samples; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float p = 0.001f + 0.998f * float(seed >> 8) / float(1 << 24);
    seed = seed * 1664525u + 1013904223u;
    a.p.values<float>()[i] = p;
    a.y.values<float>()[i] = float((seed >> 8) % 100 < unsigned(100 * p));
  }
  return a;
}

double precision_of(const Answers& a, int64_t from, int64_t to) {
  double right = 0, called = 0;
  for (int64_t i = from; i < to; ++i) called += a.p.at(i) > 0.5, right += a.p.at(i) > 0.5 && a.y.at(i) != 0;
  return called ? right / called : 0;
}

// The share of pairs of a right and a wrong one that are in order: what the area means.
double pairs_in_order(const Answers& a) {
  double good = 0, all = 0;
  for (int64_t i = 0; i < a.p.size(); ++i)
    for (int64_t k = 0; k < a.p.size(); ++k)
      if (a.y.at(i) != 0 && a.y.at(k) == 0) ++all, good += a.p.at(i) > a.p.at(k) ? 1 : a.p.at(i) == a.p.at(k) ? 0.5 : 0;
  return good / all;
}

}  // namespace

TEST_CASE("AUC: is the share of pairs in order, 1 when all are and 0 when none is") {
  Sequential model = echo({AUC()});
  const Answers a = answers(301);
  CHECK(model.evaluate(a.p, a.y, {.verbose = 0})["auc"] ==
        doctest::Approx(pairs_in_order(a)).epsilon(0.005));  // 200 thresholds are not all pairs
  const Tensor p = Tensor::of({0.1f, 0.2f, 0.8f, 0.9f}, {4, 1});
  CHECK(model.evaluate(p, Tensor::of({0.f, 0.f, 1.f, 1.f}, {4, 1}), {.verbose = 0})["auc"] == 1);
  CHECK(model.evaluate(p, Tensor::of({1.f, 1.f, 0.f, 0.f}, {4, 1}), {.verbose = 0})["auc"] == 0);
}

TEST_CASE("counting metrics: batches of any size, arrays and datasets give the same") {
  Sequential model =
      echo({AUC(), AUC({.curve = AUCOptions::Curve::kPR, .name = "pr"}), Precision(), Recall("lax", 0.25)});
  const Answers a = answers(157);
  const Results whole = model.evaluate(a.p, a.y, {.batch_size = 157, .verbose = 0});
  CHECK(whole["precision"] == precision_of(a, 0, 157));
  for (const int64_t batch : {1, 16, 50, 156})
    for (const char* name : {"auc", "pr", "precision", "lax"}) {
      INFO(name, " in batches of ", batch);
      CHECK(model.evaluate(a.p, a.y, {.batch_size = batch, .verbose = 0})[name] == whole[name]);
      CHECK(model.evaluate(Dataset::from_arrays(a.p, a.y).batch(batch), {.verbose = 0})[name] == whole[name]);
    }
}

TEST_CASE("counting metrics: begin anew with each epoch, in training and in validating") {
  Sequential model = echo({Precision(), AUC()});
  const Answers a = answers(70), b = answers(45, 9);
  const double auc = model.evaluate(a.p, a.y, {.verbose = 0})["auc"];
  const History h = model.fit(a.p, a.y, {.batch_size = 16, .epochs = 3, .verbose = 0, .validation_data = {b.p, b.y}});
  for (int e = 0; e < 3; ++e) {
    CHECK(h["precision"][size_t(e)] == precision_of(a, 0, 70));
    CHECK(h["auc"][size_t(e)] == auc);
    CHECK(h["val_precision"][size_t(e)] == precision_of(b, 0, 45));
  }
  const History streamed =
      model.fit(Dataset::from_arrays(a.p, a.y).batch(16),
                {.epochs = 2, .verbose = 0, .validation = Dataset::from_arrays(b.p, b.y).batch(16)});
  CHECK(streamed["precision"] == std::vector<double>(2, precision_of(a, 0, 70)));
  CHECK(streamed["val_precision"] == std::vector<double>(2, precision_of(b, 0, 45)));
  CHECK(model.train_on_batch(a.p, a.y)["precision"] == precision_of(a, 0, 70));
  CHECK(model.test_on_batch(b.p, b.y)["precision"] == precision_of(b, 0, 45));
}

TEST_CASE("counting metrics: what a callback evaluates meanwhile is not counted") {
  struct Meanwhile : Callback {
    Answers other = answers(33, 5);
    Model* model = nullptr;
    int* calls = nullptr;
    void evaluate() {
      ++*calls;
      CHECK(model->evaluate(other.p, other.y, {.batch_size = 8, .verbose = 0})["precision"] ==
            precision_of(other, 0, 33));
    }
    void on_train_batch_end(int64_t, const Logs&) override { evaluate(); }
    void on_test_batch_end(int64_t step, const Logs&) override {
      if (nested || step != 1) return;
      nested = true;
      evaluate();
      nested = false;
    }
    bool nested = false;
  } meanwhile;
  Sequential model = echo({Precision()});
  meanwhile.model = &model;
  int calls = 0;
  meanwhile.calls = &calls;
  const Answers a = answers(70);
  const History h =
      model.fit(a.p, a.y, {.batch_size = 16, .epochs = 2, .verbose = 0, .callbacks = {meanwhile}, .shuffle = false});
  CHECK(h["precision"] == std::vector<double>(2, precision_of(a, 0, 70)));
  CHECK(model.evaluate(a.p, a.y, {.batch_size = 16, .verbose = 0, .callbacks = {meanwhile}})["precision"] ==
        precision_of(a, 0, 70));
  CHECK(calls >= 2 * 5 + 1);
}

TEST_CASE("counting metrics: threads that evaluate one model count for themselves") {
  const Sequential model = echo({AUC(), Precision()});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Answers a = answers(90 + 7 * t, 3 + t);
      for (int i = 0; i < 20; ++i)
        wrong += model.evaluate(a.p, a.y, {.batch_size = 16, .verbose = 0, .threads = 1})["precision"] !=
                 precision_of(a, 0, 90 + 7 * t);
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("counting metrics: the plan names every byte they count in") {
  Sequential model({Input({6}), Dense(4, relu), Dense(1, sigmoid)});
  model.compile({.optimizer = "adam", .loss = "binary_crossentropy", .metrics = {"accuracy"}});
  const MemoryPlan without = model.plan({.batch = 16});
  CHECK(without.metrics == Bytes{0});
  model.compile({.optimizer = "adam",
                 .loss = "binary_crossentropy",
                 .metrics = {AUC(), AUC({.num_thresholds = 50, .name = "few"}), Precision()}});
  const MemoryPlan plan = model.plan({.batch = 16});
  CHECK(plan.account("metrics/auc") == Bytes{8 * (200 + 200 + 1 + 1)});
  CHECK(plan.account("metrics/auc/true_positives") == Bytes{8 * 200});
  CHECK(plan.account("metrics/few") == Bytes{8 * (50 + 50 + 1 + 1)});
  CHECK(plan.account("metrics/precision") == Bytes{16});
  CHECK(plan.metrics == plan.account("metrics"));
  CHECK(plan.table().find("metrics") != std::string::npos);
  CHECK(plan.slots == without.slots);
  CHECK(plan.programs[0].slow_kernels == 0);
  CHECK(model.plan({.batch = 1024}).programs[0].slow_kernels == 0);
}

TEST_CASE("metrics: labels that do not fit are refused with both shapes, an unknown name with the known ones") {
  Sequential model({Input({6}), Dense(3, softmax)});
  model.compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy", .metrics = {AUC()}});
  try {
    model.evaluate(Tensor(DType::kFloat32, {4, 6}), Tensor(DType::kInt32, {4}), {.verbose = 0});
    FAIL("four labels for twelve predictions");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("auc: labels are") != std::string::npos);
  }
  CHECK_THROWS_WITH_AS(Metric("f1"), doctest::Contains("known are accuracy"), Error);
  CHECK_THROWS_WITH_AS(AUC({.num_thresholds = 1}), doctest::Contains("num_thresholds is 1, but must be at least 2"),
                       Error);
}

}  // namespace millpond
