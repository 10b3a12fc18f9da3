#include <doctest/doctest.h>

#include <cmath>

#include "train/support.h"

using namespace millpond;
namespace mx = millpond::extend;

namespace {

struct Scale : mx::OwnLayer {
  mx::Weight gain;
  void build(mx::Build& b, std::span<const mx::Type> x) override {
    gain = b.add_weight("gain", {x[0].shape.back()}, "ones");
  }
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    const mx::Value y = x[0] * c.read(gain);
    return {y, mx::sum(y, {1}, true)};
  }
};

struct Counter : mx::OwnLayer {  // adds how many steps of training there have been
  mx::Weight steps;
  void build(mx::Build& b, std::span<const mx::Type>) override { steps = b.add_weight("steps", {}, "zeros", false); }
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    const mx::Value n = c.read(steps);
    if (c.training()) c.assign(steps, n + 1.0);
    return x[0] + n * 0.0;
  }
};

struct Twice : mx::OwnLayer {
  void build(mx::Build& b, std::span<const mx::Type>) override {
    b.add_weight("w", {1}, "ones");
    b.add_weight("w", {2}, "ones");
  }
  mx::Values call(mx::Call&, std::span<const mx::Value> x) override { return x[0]; }
};

struct WithoutBatch : mx::OwnLayer {
  mx::Values call(mx::Call&, std::span<const mx::Value> x) override { return mx::mean(x[0], {0}); }
};

struct DependsOnBatch : mx::OwnLayer {
  mx::Values call(mx::Call&, std::span<const mx::Value> x) override {
    return x[0].shape()[0] == 1 ? x[0] : mx::sum(x[0], {1}, true);
  }
};

struct Cube : mx::OwnElementwise {
  std::string name() const override { return "cube"; }
  void apply(std::span<const float* const> x, float* y, int64_t n) const override {
    for (int64_t i = 0; i < n; ++i) y[i] = x[0][i] * x[0][i] * x[0][i];
  }
  std::vector<mx::Value> gradient(std::span<const mx::Value> x, std::span<const mx::Value>,
                                  std::span<const mx::Value> dy) const override {
    return {dy[0] * mx::square(x[0]) * 3.0};
  }
};

struct Bad : mx::OwnOperator {
  std::string called;
  int kind;  // 1: writes behind its result, 2: to its operand, 3: a gradient of another shape
  explicit Bad(int k, std::string n = "bad") : called(std::move(n)), kind(k) {}
  std::string name() const override { return called; }
  std::string attributes() const override { return std::to_string(kind); }
  std::vector<mx::Type> infer(std::span<const mx::Type> x) const override { return {x[0]}; }
  void compute(std::span<const mx::Array> in, std::span<const mx::Array> out) const override {
    const auto x = in[0].values<float>();
    const auto y = out[0].values<float>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = x[i];
    if (kind == 1) y.data()[y.size()] = 7;
    if (kind == 2) x[0] = 7;
  }
  std::vector<mx::Value> gradient(std::span<const mx::Value>, std::span<const mx::Value>,
                                  std::span<const mx::Value> dy) const override {
    return {mx::sum(dy[0], {1})};
  }
};

template <class Own>
struct Applied : mx::OwnLayer {
  std::shared_ptr<const Own> own;
  explicit Applied(std::shared_ptr<const Own> o) : own(std::move(o)) {}
  mx::Values call(mx::Call&, std::span<const mx::Value> x) override { return mx::apply(own, {x[0]}); }
};
template <class Own>
Layer applied(std::shared_ptr<const Own> own) {
  return mx::own_layer<Applied<Own>>("applied", std::move(own));
}

struct Absolute : mx::OwnLoss {
  mx::Value values(mx::Value y, mx::Value p) const override { return mx::mean(mx::abs(y - p), {-1}); }
};
struct AbsoluteMetric : mx::OwnMetric {
  mx::Value values(mx::Value y, mx::Value p) const override { return mx::mean(mx::abs(y - p), {-1}); }
};
struct Samples : mx::OwnCountingMetric {
  std::vector<Count> counts() const override { return {{"n", {DType::kInt64, {}}}}; }
  std::vector<mx::Value> update(std::span<const mx::Value> before, mx::Value y, mx::Value) const override {
    return {before[0] + double(y.shape()[0])};
  }
  double result(std::span<const Tensor> counts) const override { return counts[0].at(0); }
};

}  // namespace

TEST_CASE("extend: a layer with a weight and two results trains, and its memory stands under its name") {
  set_random_seed(2);
  const Input x({4});
  const std::vector<SymbolicTensor> both = mx::own_layer<Scale>("scale").call_all({x});
  Model model({x}, {Dense(1)(Concatenate()({both[0], both[1]}))});
  CHECK(model.weight_names()[0] == "scale/gain");
  model.compile("adam", "mse");
  const Tensor data = uniform({32, 4}, 1);
  const History h = model.fit(data, learnable(data), {.epochs = 30, .verbose = 0});
  CHECK(h["loss"].back() < h["loss"].front());
  CHECK(Layer(model.get_layer("scale")).type() == "Scale");
}

TEST_CASE("extend: a state is moved by training alone") {
  Sequential model{Input({2}), mx::own_layer<Counter>("counter"), Dense(1)};
  model.compile("sgd", "mse");
  const Tensor x = uniform({12, 2}, 1), y = uniform({12, 1}, 2);
  model.fit(x, y, {.batch_size = 4, .epochs = 2, .verbose = 0});
  model.evaluate(x, y, {.verbose = 0});
  (void)model.predict(x);
  CHECK(model.get_layer("counter").get_weights()[0].at(0) == 6);
}

TEST_CASE("extend: an operator's kernel is run, by one thread and by several, and its gradient trains") {
  const auto loss = [](bool own, int threads) {
    clear_session();
    set_random_seed(3);
    struct Plain : mx::OwnLayer {
      mx::Values call(mx::Call&, std::span<const mx::Value> x) override { return x[0] * x[0] * x[0]; }
    };
    Sequential model{Input({600}), Dense(700),
                     own ? applied<Cube>(std::make_shared<Cube>()) : mx::own_layer<Plain>("p"), Dense(1)};
    model.compile(SGD(1e-4), "mse");
    return model
        .fit(uniform({64, 600}, 1), uniform({64, 1}, 2), {.epochs = 3, .verbose = 0, .threads = threads})["loss"]
        .back();
  };
  const double wanted = loss(false, 1);
  CHECK(std::abs(loss(true, 1) - wanted) < 1e-4 * std::abs(wanted));
  CHECK(std::abs(loss(true, 2) - wanted) < 1e-4 * std::abs(wanted));
}

TEST_CASE("extend: a loss, a mean metric and a counting one tell what Millpond's own tell") {
  set_random_seed(3);
  Sequential model{Input({4}), Dense(2)};
  model.compile({.optimizer = "sgd",
                 .loss = mx::own_loss<Absolute>(),
                 .metrics = {"mae", mx::own_metric<AbsoluteMetric>(), mx::own_metric<Samples>("samples")}});
  const Results r = model.evaluate(uniform({37, 4}, 1), uniform({37, 2}, 2), {.batch_size = 8, .verbose = 0});
  CHECK(r["loss"] == doctest::Approx(r["mae"]));
  CHECK(r["absolute_metric"] == doctest::Approx(r["mae"]));
  CHECK(r["samples"] == 37);
}

TEST_CASE("extend: bad use is refused with the name of the user's class") {
  const Input x({4});
  CHECK(message_of([&] {
          mx::own_layer<Twice>("t")(x);
        }).starts_with("layer \"t\" (class Twice): the weight \"w\" is made twice"));
  CHECK(message_of([&] {
          mx::own_layer<WithoutBatch>("w")(x);
        }).starts_with("layer \"w\" (class WithoutBatch): result 0 of call has the shape [4] for a batch of 1"));
  CHECK(message_of([&] {
          Sequential model{Input({4}), mx::own_layer<DependsOnBatch>("d")};
          (void)model.predict(uniform({3, 4}, 1));
        }).starts_with("layer \"d\" (class DependsOnBatch) gives float32[3, 1] now, but float32[1, 4]"));
  const std::string two =
      message_of([&] { Model({x}, {mx::own_layer<Counter>("same")(mx::own_layer<Counter>("same")(x))}, "m"); });
  CHECK(two.starts_with("two layers of the model \"m\" have the name \"same\""));
  CHECK(two.find("class Counter") != std::string::npos);
  CHECK(message_of([&] {
          applied<Bad>(std::make_shared<Bad>(0, "matmul"))(x);
        }).starts_with("operator \"matmul\" (class Bad): an operator of Millpond's has this name"));
  CHECK(
      message_of([&] {
        Sequential model{Input({4}), Dense(4), applied<Bad>(std::make_shared<Bad>(3))};
        model.compile("sgd", "mse");
        model.fit(uniform({3, 4}, 1), uniform({3, 4}, 1), {.verbose = 0});
      })
          .starts_with(
              "operator \"bad\" (class Bad): the gradient for operand 0 is float32[3], but the operand float32[3, 4]"));
}

#ifdef MILLPOND_CHECKS
TEST_CASE("extend: in debug builds a kernel that writes where it may not is told by its class") {
  const auto message = [](int kind) {
    return message_of([&] {
      Sequential model{Input({4}), applied<Bad>(std::make_shared<Bad>(kind))};
      (void)model.predict(uniform({3, 4}, 1), {.threads = 1});
    });
  };
  CHECK(message(0).empty());
  CHECK(message(1).starts_with("operator \"bad\" (class Bad): compute writes outside of result 0"));
  CHECK(message(2).starts_with("operator \"bad\" (class Bad): compute writes to its operand 0"));
}
#endif
