// Masks: where they come from, what hands them on, and what obeys them.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/network.h"
#include "train/support.h"

using namespace millpond;

namespace {

Tensor words(std::initializer_list<std::initializer_list<int32_t>> rows) {
  Tensor t(DType::kInt32, {int64_t(rows.size()), int64_t(rows.begin()->size())}, "data/test");
  size_t at = 0;
  for (const auto& row : rows)
    for (const int32_t v : row) t.values<int32_t>()[at++] = v;
  return t;
}

// Rows `from` to `to` of the first sample.
std::vector<float> steps(const Tensor& y, int64_t from, int64_t to) {
  const int64_t width = y.shape().back();
  const auto all = y.values<float>();
  return {all.begin() + from * width, all.begin() + to * width};
}
void check_near(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
}

bool masked(const SymbolicTensor& t) { return !nn::mask_of(t).from.empty(); }

}  // namespace

TEST_CASE("masks: layers hand on, join or drop them as Keras's do") {
  const Input a({4}, DType::kInt32), b({4}, DType::kInt32), plain({4, 3});
  const SymbolicTensor x = Embedding(9, 3, {.mask_zero = true})(a), y = Embedding(9, 3, {.mask_zero = true})(b);
  CHECK(masked(x));
  CHECK(!masked(Embedding(9, 3)(a)));
  CHECK(masked(Masking(2)(plain)));
  CHECK(nn::mask_of(Masking(2)(plain)).from[0] == nn::Mask::Source{plain, 2});
  for (const Layer& keeps : {Layer(Dense(2)), Layer(Activation(relu)), Layer(Dropout(.5)), Layer(LayerNormalization()),
                             Layer(BatchNormalization()), Layer(LSTM(2, {.return_sequences = true}))})
    CHECK_MESSAGE(masked(keeps(x)), keeps.type());
  for (const Layer& drops : {Layer(Flatten()), Layer(LSTM(2)), Layer(Reshape({2, 6})), Layer(Reshape({4, 3}))})
    CHECK_MESSAGE(!masked(drops(x)), drops.type());
  CHECK(nn::mask_of(Add()({x, y})).from.size() == 2);
  CHECK(nn::mask_of(Concatenate()({x, y})).from.size() == 2);
  CHECK(!masked(Add()({x, plain})));
  CHECK(nn::mask_of(Concatenate()({x, plain})).from.size() == 1);  // in which all counts
  CHECK(nn::mask_of(Concatenate(1)({x, plain})).type.shape == Shape{1, 8});
  // Attention has a result for each query.
  CHECK(nn::mask_of(MultiHeadAttention(1, 2)(x, y)).from == nn::mask_of(x).from);
  CHECK(!masked(MultiHeadAttention(1, 2)(plain, y)));
  CHECK(nn::mask_of(Embedding(9, 3, {.mask_zero = true})(Input({None}, DType::kInt32))).type.shape == Shape{1, None});
}

TEST_CASE("masks: attention looks only at what counts, causal or not") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    set_random_seed(5);
    const Input in({None}, DType::kInt32);
    const SymbolicTensor x = Embedding(9, 6, {.mask_zero = true})(in);
    Model model({in}, {MultiHeadAttention(2, 3)(x, x, {.use_causal_mask = causal})});
    const Tensor padded(model.predict(words({{4, 2, 7, 0, 0, 0}}))), alone(model.predict(words({{4, 2, 7}})));
    check_near(steps(padded, 0, 3), steps(alone, 0, 3));
    const Tensor in_front(model.predict(words({{0, 0, 4, 2, 7}})));
    check_near(steps(in_front, 2, 5), steps(alone, 0, 3));
  }
}

TEST_CASE("masks: attention obeys those of values and keys, and trains over sequences of which nothing counts") {
  set_random_seed(5);
  const Input q({2, 4}), v({None}, DType::kInt32), k({None, 4});
  const SymbolicTensor values = Embedding(9, 4, {.mask_zero = true})(v), keys = Masking(0)(k);
  Model model({q, v, k}, {MultiHeadAttention(2, 3, {.dropout = .1})(q, values, keys)});
  const Tensor query = uniform({1, 2, 4}, 1), all = uniform({1, 5, 4}, 2, 0.5, 1);
  Tensor some = all.astype(DType::kFloat32);
  std::ranges::fill(some.values<float>().subspan(4, 4), 0.f);  // the second key does not count, nor the last value
  Tensor fewer(DType::kFloat32, {1, 3, 4}, "data/test");
  for (size_t i = 0; i < 12; ++i) fewer.values<float>()[i] = all.values<float>()[i < 4 ? i : i + 4];
  check_near(flat({Tensor(model.predict({query, words({{3, 5, 2, 8, 0}}), some}))}),
             flat({Tensor(model.predict({query, words({{3, 2, 8}}), fewer}))}));
  model.compile("sgd", "mse");
  CHECK(std::isfinite(
      model.train_on_batch({query, words({{0, 0}}), uniform({1, 2, 4}, 3)}, uniform({1, 2, 4}, 4))["loss"]));
}

TEST_CASE("masks: where an operand of Concatenate has none, all of its steps count") {
  set_random_seed(5);
  const Input in({4}, DType::kInt32), plain({4, 3});
  const Tensor w = words({{4, 0, 7, 0}, {0, 0, 1, 2}}), p = uniform({2, 4, 3}, 1);
  const LSTM lstm(2, {.return_sequences = true});
  Model one({in, plain}, {lstm(Concatenate()({Embedding(9, 3, {.mask_zero = true})(in), plain}))}),
      all({in, plain}, {lstm(Concatenate()({Embedding(9, 3)(in), plain}))});
  all.set_weights(one.get_weights());
  check_near(flat({Tensor(one.predict({w, p}))}), flat({Tensor(all.predict({w, p}))}));
}

TEST_CASE("masks: batch normalization has the statistics of what counts") {
  set_random_seed(5);
  Sequential model{Input({None, 2}), Masking(0), BatchNormalization({.momentum = 0.5}), Dense(1)};
  model.compile("sgd", "mse");
  const std::vector<Tensor> before = model.get_weights();
  Tensor padded = uniform({1, 6, 2}, 3, 1, 4);
  std::ranges::fill(padded.values<float>().subspan(8), 0.f);
  Tensor alone(DType::kFloat32, {1, 4, 2}, "data/test");
  std::ranges::copy(padded.values<float>().first(8), alone.values<float>().begin());
  const auto statistics = [&](const Tensor& x) {
    model.set_weights(before);
    model.train_on_batch(x, uniform({1, x.shape()[1], 1}, 4));
    std::vector<float> moved;
    for (const Tensor& t : Layer(model.layers()[1]).get_weights())
      for (const float f : t.values<float>()) moved.push_back(f);
    return std::vector<float>(moved.end() - 4, moved.end());
  };
  check_near(statistics(padded), statistics(alone));
}

TEST_CASE("masks: loss and metrics of an output are those of what counts in it") {
  set_random_seed(5);
  Sequential model{Input({None}, DType::kInt32), Embedding(9, 4, {.mask_zero = true}), Dense(3, softmax)};
  model.compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  const Results padded = model.evaluate(words({{4, 2, 7, 0, 0}}), words({{0, 1, 2, 1, 1}}), {.verbose = 0}),
                alone = model.evaluate(words({{4, 2, 7}}), words({{0, 1, 2}}), {.verbose = 0});
  CHECK(padded["loss"] == doctest::Approx(alone["loss"]).epsilon(1e-6));
  CHECK(padded["accuracy"] == doctest::Approx(alone["accuracy"]).epsilon(1e-6));
  // Nothing counts: no loss, no metric, and nothing that is not finite.
  const Results none = model.evaluate(words({{0, 0}}), words({{1, 1}}), {.verbose = 0});
  CHECK(none["loss"] == 0);
  CHECK(none["accuracy"] == 0);
}

namespace {

// As Keras writes it: the mask of the embedding is an operator of the model, and the attention is called with it.
std::string keras_attention(const std::string& compared, const std::string& operation) {
  const auto tensor = [](const std::string& layer, const std::string& shape, const std::string& dtype) {
    return R"({"class_name": "__keras_tensor__", "config": {"shape": )" + shape + R"(, "dtype": ")" + dtype +
           R"(", "keras_history": [")" + layer + R"(", 0, 0]}})";
  };
  const std::string in = tensor("in", "[null, 4]", "int32"), words = tensor("words", "[null, 4, 6]", "float32"),
                    mask = tensor("not_equal", "[null, 4]", "bool");
  return R"({"class_name": "Functional", "config": {"name": "m", "layers": [
    {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 4], "dtype": "int32", "name": "in"}, "name": "in", "inbound_nodes": []},
    {"module": "keras.layers", "class_name": "Embedding", "config": {"name": "words", "input_dim": 9, "output_dim": 6, "mask_zero": true}, "name": "words",
     "inbound_nodes": [{"args": [)" +
         in + R"(], "kwargs": {}}]},
    {"module": "keras.src.ops.numpy", "class_name": ")" +
         operation + R"(", "config": {"name": "not_equal"}, "name": "not_equal", "inbound_nodes": [{"args": [)" + in +
         ", " + compared + R"(], "kwargs": {}}]},
    {"module": "keras.layers", "class_name": "MultiHeadAttention", "config": {"name": "look", "num_heads": 2, "key_dim": 3}, "name": "look",
     "inbound_nodes": [{"args": [)" +
         words + ", " + words + R"(], "kwargs": {"query_mask": )" + mask + R"(, "value_mask": )" + mask + R"(}}]}],
    "input_layers": [["in", 0, 0]], "output_layers": [["look", 0, 0]]}})";
}

}  // namespace

TEST_CASE("masks: those that Keras writes into a model's JSON are read, and others are refused by name") {
  const Model model = model_from_json(keras_attention("0", "NotEqual"));
  CHECK(masked(model.outputs()[0]));
  const Model again = model_from_json(model.to_json());
  CHECK(again.to_json() == model.to_json());
  CHECK(message_of([] {
          model_from_json(keras_attention("3", "NotEqual"));
        }).starts_with("MultiHeadAttention \"look\" is called with a query_mask that is not the mask of its operand"));
  CHECK(message_of([] {
          model_from_json(keras_attention("0", "Greater"));
        }).starts_with("the operation Greater in the mask of a call is not here yet"));
}
