// Dtype policies: what weights, slots and activations are kept in, and the scaling of float16's losses.
#include <doctest/doctest.h>

#include <cmath>

#include "millpond/millpond.h"
#include "train/model.h"
#include "train/optimizer.h"

using namespace millpond;

namespace {

struct Policy {  // while it lives
  explicit Policy(const char* name) { set_dtype_policy(name); }
  ~Policy() { set_dtype_policy("float32"); }
};

Tensor uniform(Shape shape, uint64_t seed) {
  Tensor t(DType::kFloat32, shape);
  uint64_t s = seed * 0x9e3779b97f4a7c15ull + 1;
  for (float& v : t.values<float>())
    s = s * 6364136223846793005ull + 1442695040888963407ull, v = float(s >> 40) * 0x1p-24f - 0.5f;
  return t;
}

}  // namespace

TEST_CASE("policy: names are Keras's, and an unknown one is refused with all that are known") {
  CHECK(DTypePolicy("mixed_bfloat16").compute == DType::kBFloat16);
  CHECK(DTypePolicy("mixed_bfloat16").variable == DType::kFloat32);
  CHECK(DTypePolicy("float64").name() == "float64");
  CHECK_THROWS_WITH_AS(DTypePolicy("mixed_float32"),
                       "\"mixed_float32\" is not a dtype policy; known: float32, float64, bfloat16, float16, "
                       "mixed_bfloat16, mixed_float16",
                       Error);
  CHECK(dtype_policy() == DTypePolicy());
}

TEST_CASE("policy: every one trains, and its weights and predictions have its types") {
  for (const char* name : {"float32", "float64", "bfloat16", "float16", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(name);
    const Policy policy(name);
    set_random_seed(3);
    Sequential model{Input({6}), Dense(16, relu), BatchNormalization(), Dropout(0.1), Dense(3, softmax)};
    model.compile({.optimizer = Adam(0.01), .loss = SparseCategoricalCrossentropy(), .metrics = {"accuracy"}});
    const Tensor x = uniform({64, 6}, 1);
    Tensor y(DType::kInt32, {64});
    for (int64_t i = 0; i < 64; ++i)
      y.values<int32_t>()[size_t(i)] = int32_t(x.at(6 * i) > 0) + int32_t(x.at(6 * i + 1) > 0);
    const double before = model.evaluate(x, y, {.verbose = 0})["loss"];
    model.fit(x, y, {.batch_size = 16, .epochs = 20, .verbose = 0});
    const double after = model.evaluate(x, y, {.verbose = 0})["loss"];
    CHECK(after < 0.8 * before);
    const DTypePolicy p(name);
    for (const Tensor& w : model.get_weights()) CHECK(w.dtype() == p.variable);
    CHECK(model.predict(x)[0].dtype() == p.compute);
  }
}

TEST_CASE("policy: a layer may have its own, told before it is called") {
  Dense half(8, relu), whole(2);
  half.set_dtype_policy("mixed_bfloat16");
  Sequential model{Input({4}), half, whole};
  CHECK(model.predict(uniform({3, 4}, 1))[0].dtype() == DType::kFloat32);
  CHECK_THROWS_AS(half.set_dtype_policy("float64"), Error);
  CHECK(half.get_config().find("mixed_bfloat16") != std::string::npos);
  CHECK(Layer::from_config("Dense", half.get_config()).dtype_policy() == DTypePolicy("mixed_bfloat16"));
}

TEST_CASE("policy: with float16 a step that is not finite changes nothing but the scale, which is halved") {
  const Policy policy("mixed_float16");
  set_random_seed(5);
  Sequential model{Input({4}), Dense(8, relu), Dense(1)};
  const Optimizer adam = Adam(0.01);
  model.compile({.optimizer = adam, .loss = MeanSquaredError()});
  const Tensor x = uniform({8, 4}, 1), y = uniform({8, 1}, 2);
  model.train_on_batch(x, y);
  const auto& scale = adam.impl()->loss_scale;
  REQUIRE(scale);
  CHECK(scale->scale.get<float>() == 32768);
  CHECK(scale->good_steps.get<int64_t>() == 1);
  CHECK(adam.iterations() == 1);
  const std::vector<Tensor> before = model.get_weights();
  Tensor far = uniform({8, 1}, 3);  // a loss whose gradient no float16 holds
  for (float& v : far.values<float>()) v = 1e6f;
  model.train_on_batch(x, far);
  CHECK(scale->scale.get<float>() == 16384);
  CHECK(scale->good_steps.get<int64_t>() == 0);
  CHECK(adam.iterations() == 1);
  const std::vector<Tensor> after = model.get_weights();
  for (size_t i = 0; i < before.size(); ++i)
    for (int64_t k = 0; k < before[i].size(); ++k) CHECK(after[i].at(k) == before[i].at(k));
  model.train_on_batch(x, y);
  CHECK(adam.iterations() == 2);
}

TEST_CASE("policy: NaN passes every activation in every type, alone and behind a dense layer") {
  for (const char* name : {"float32", "float64", "mixed_bfloat16", "mixed_float16"})
    for (const char* activation :
         {"linear", "relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "hard_sigmoid", "tanh", "softmax",
          "softplus", "softsign", "silu", "gelu", "gelu_tanh", "exponential"}) {
      CAPTURE(name);
      CAPTURE(activation);
      const Policy policy(name);
      Tensor x = uniform({5, 40}, 1);
      x.values<float>()[40 * 3 + 7] = NAN;
      Sequential behind{Input({40}), Dense(40, activation)};
      const Tensor b = behind.predict(x, {.check_inputs = false})[0];
      for (int64_t i = 0; i < 40; ++i) CHECK(std::isnan(b.at(40 * 3 + i)));
      if (std::string_view(activation) == "linear") continue;  // nothing to run
      Sequential alone{Input({40}), Activation(activation)};
      const Tensor a = alone.predict(x, {.check_inputs = false})[0];
      CHECK(std::isnan(a.at(40 * 3 + 7)));
      CHECK(std::isfinite(a.at(40 * 2 + 7)));
    }
}
