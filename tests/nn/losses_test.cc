#include <doctest/doctest.h>

#include <cmath>

#include "nn/draw.h"
#include "nn/loss.h"
#include "train/support.h"

using namespace millpond;

namespace {
/// Loss of predictions that are the inputs themselves.
Results judge(const Tensor& predictions, const Tensor& y, Loss loss, MetricList metrics = {}) {
  const Shape s = predictions.shape();
  const Input x(s.slice(1, s.rank()));
  Model model({x}, {Activation(linear)(x)});
  model.compile(SGD(), std::move(loss), std::move(metrics));
  return model.evaluate(predictions, y, {.verbose = 0});
}
Tensor of(std::vector<float> v, Shape s) { return Tensor::of<float>(v, s); }
Tensor ints(std::vector<int32_t> v, Shape s) { return Tensor::of<int32_t>(v, s); }
}  // namespace

TEST_CASE("losses: the examples of Keras's documentation") {
  CHECK(judge(of({1, 1, 1, 0}, {2, 2}), of({0, 1, 0, 0}, {2, 2}), "mse")["loss"] == doctest::Approx(0.5));
  CHECK(judge(of({1, 1, 1, 0}, {2, 2}), of({0, 1, 0, 0}, {2, 2}), "mae")["loss"] == doctest::Approx(0.5));
  CHECK(judge(of({.6f, .4f, .4f, .6f}, {2, 2}), of({0, 1, 0, 0}, {2, 2}), "binary_crossentropy")["loss"] ==
        doctest::Approx(0.8149).epsilon(1e-4));
  CHECK(judge(of({-18.6f, 0.51f, 2.94f, -12.8f}, {4, 1}), of({0, 1, 0, 0}, {4, 1}),
              BinaryCrossentropy({.from_logits = true}))["loss"] == doctest::Approx(0.865458).epsilon(1e-5));
  CHECK(judge(of({.05f, .95f, 0, .1f, .8f, .1f}, {2, 3}), of({0, 1, 0, 0, 0, 1}, {2, 3}),
              "categorical_crossentropy")["loss"] == doctest::Approx(1.177).epsilon(1e-3));
  CHECK(judge(of({.05f, .95f, 0, .1f, .8f, .1f}, {2, 3}), ints({1, 2}, {2}),
              "sparse_categorical_crossentropy")["loss"] == doctest::Approx(1.177).epsilon(1e-3));
}

TEST_CASE("losses: far from zero they stay finite") {
  for (const float z : {1e4f, -1e4f})
    for (const float y : {0.f, 1.f}) {
      const double wrong = (z > 0) == (y > 0.5f) ? 0 : 1e4;
      CHECK(judge(of({z}, {1, 1}), of({y}, {1, 1}), BinaryCrossentropy({.from_logits = true}))["loss"] ==
            doctest::Approx(wrong));
    }
  CHECK(judge(of({1e4f, -1e4f}, {1, 2}), ints({1}, {1}),
              SparseCategoricalCrossentropy({.from_logits = true}))["loss"] == doctest::Approx(2e4));
  CHECK(judge(of({1e4f, -1e4f}, {1, 2}), of({0, 1}, {1, 2}), CategoricalCrossentropy({.from_logits = true}))["loss"] ==
        doctest::Approx(2e4));
}

TEST_CASE("losses: a logit of exactly zero pulls toward its label") {
  for (const float y : {0.f, 1.f}) {
    Sequential model{Input({1}), Dense(1, sigmoid, {.kernel_initializer = "zeros"})};
    model.compile(SGD(1), "binary_crossentropy");
    model.fit(of({1}, {1, 1}), of({y}, {1, 1}), {.verbose = 0});
    CHECK(model.get_weights()[0].at(0) == doctest::Approx(y - 0.5));
  }
}

TEST_CASE("metrics: accuracy is chosen by the shapes") {
  CHECK(judge(of({.6f, .4f, .7f}, {3, 1}), of({1, 1, 1}, {3, 1}), "mse", {"accuracy"})["accuracy"] ==
        doctest::Approx(2. / 3));
  CHECK(judge(of({.6f, .4f, .7f}, {3, 1}), of({1, 1, 1}, {3}), "mse", {"acc"})["acc"] == doctest::Approx(2. / 3));
  CHECK(judge(of({.6f, .3f, .1f, .2f, .7f, .1f}, {2, 3}), of({1, 0, 0, 0, 0, 1}, {2, 3}), "mse",
              {"accuracy"})["accuracy"] == doctest::Approx(0.5));
  CHECK(judge(of({.6f, .3f, .1f, .2f, .7f, .1f}, {2, 3}), ints({0, 2}, {2, 1}), "sparse_categorical_crossentropy",
              {Accuracy()})["accuracy"] == doctest::Approx(0.5));
  CHECK(judge(of({.6f, .4f}, {2, 1}), of({1, 1}, {2, 1}), "mse",
              {BinaryAccuracy("b", 0.3), metrics::MeanSquaredError()})["b"] == doctest::Approx(1));
}

TEST_CASE("losses: labels that do not fit are refused with both shapes") {
  CHECK(message_of([] {
          judge(of({1, 2, 3, 4}, {2, 2}), of({1, 2, 3, 4, 5, 6}, {2, 3}), "mse");
        }).starts_with("mse: labels are [2, 3], but predictions are [2, 2]"));
  CHECK(message_of([] {
          judge(of({1, 2, 3, 4}, {2, 2}), ints({1, 1, 1, 1}, {2, 2}), "sparse_categorical_crossentropy");
        }).find("give labels the shape [2]") != std::string::npos);
  CHECK(message_of([] {
          Loss("mean");
        }).starts_with("loss \"mean\" is not known; known are mse, mae, binary_crossentropy"));
  CHECK(
      message_of([] {
        Loss("binary_crosentropy");
      }).starts_with("loss \"binary_crosentropy\" is not known; did you mean binary_crossentropy? known are mse, mae"));
  CHECK(message_of([] { Metric("f1"); }).starts_with("metric \"f1\" is not known"));
  CHECK(message_of([] { Optimizer("ftrl"); }).starts_with("optimizer \"ftrl\" is not known"));
}

TEST_CASE("losses: whatever legal options a loss has, its config makes the same loss again") {
  std::mt19937_64 random(1);
  for (const nn::LossClass& c : nn::loss_classes())
    for (int i = 0; i < 30; ++i) {
      INFO(c.type);
      const auto impl = c.make();
      Drawer draw(random);
      impl->describe(draw);
      impl->name = "drawn";
      const std::string config = Loss(impl).get_config();
      const Loss again = Loss::from_config(c.type, config);
      CHECK(again.get_config() == config);
      CHECK(again.type() == c.type);
      CHECK(again.name() == "drawn");
    }
  CHECK(
      BinaryCrossentropy({.from_logits = true, .label_smoothing = 0.5}).get_config() ==
      R"({"name":"binary_crossentropy","reduction":"sum_over_batch_size","from_logits":true,"label_smoothing":0.5,"axis":-1})");
  CHECK(Loss("mse").type() == "MeanSquaredError");
  CHECK(Loss("mse").name() == "mse");
}

TEST_CASE("losses: options that are not allowed are refused as those of layers are") {
  const auto refusal = [](const char* type, const char* config) {
    return message_of([&] { Loss::from_config(type, config); });
  };
  CHECK(refusal("BinaryCrossentropy", R"({"label_smoothing": 2})") ==
        "BinaryCrossentropy: label_smoothing is 2.0, but must be between 0 and 1");
  CHECK(refusal("BinaryCrossentropy", R"({"from_logit": true})") ==
        "BinaryCrossentropy: from_logit = true is not here yet; did you mean from_logits?");
  CHECK(refusal("BinaryCrossentropy", R"({"reduction": "sum"})") ==
        "BinaryCrossentropy: reduction = \"sum\" is not here yet; only \"sum_over_batch_size\" is");
  CHECK(refusal("BinaryCrosentropy", "{}") ==
        "loss BinaryCrosentropy is not here yet; did you mean BinaryCrossentropy?");
  CHECK(message_of([] {
          SparseCategoricalCrossentropy({.label_smoothing = 0.1});
        }).starts_with("SparseCategoricalCrossentropy: label_smoothing is 0.1, but sparse labels have none"));
}
