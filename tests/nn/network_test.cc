#include <doctest/doctest.h>

#include "train/support.h"

using namespace millpond;

TEST_CASE("models: layers come in Keras's order, farthest from the outputs first") {
  clear_session();
  const Input x({6, 8});
  const auto q = Dense(8, gelu, {.name = "qq"})(x);
  const auto a = MultiHeadAttention(2, 4)(q, x, {.use_causal_mask = true});
  auto b = LayerNormalization()(BatchNormalization()(Add()({a, x})));
  const auto y = Dense(3, softmax)(Flatten()(Dropout(.1)(Concatenate()({b, x}))));
  const auto z = Dense(1)(Dense(2)(Flatten()(x)));
  const Model model({x}, {y, z});
  std::vector<std::string> names;
  for (const Layer& l : model.layers()) names.push_back(std::string(l.type()));
  CHECK(names == std::vector<std::string>{"InputLayer", "Dense", "MultiHeadAttention", "Add", "BatchNormalization",
                                          "LayerNormalization", "Concatenate", "Dropout", "Flatten", "Flatten", "Dense",
                                          "Dense", "Dense"});
  CHECK(model.layers()[8].name() == "flatten_1");  // of the shorter branch, as in Keras
  CHECK(model.count_params() == 800);
  CHECK(model.name() == "functional");
}

TEST_CASE("models: what cannot be computed is refused") {
  const Input x({3}, DType::kFloat32, "x"), other({3}, DType::kFloat32, "other");
  const auto y = Add()({Dense(3)(x), other});
  CHECK(message_of([&] {
          Model({x}, {y}, "m");
        }).starts_with("the model \"m\" needs the input \"other\", which is not among its inputs"));
  CHECK(message_of([&] {
          Model({y}, {y}, "m");
        }).starts_with("the model \"m\" is given an input that was not made by Input"));
  CHECK(message_of([&] {
          Model({x}, {Dense(1, {.name = "d"})(Dense(2, {.name = "d"})(x))}, "m");
        }).starts_with("two layers of the model \"m\" have the name \"d\""));
  CHECK(message_of([&] {
          Sequential({Dense(2), Input({2}), Dense(1)}).fit(uniform({2, 2}, 1), uniform({2, 1}, 1));
        }).find("stands behind other layers") != std::string::npos);
}

TEST_CASE("models: a model is a layer too, and shares its weights") {
  set_random_seed(3);
  Sequential base{Input({4}), Dense(5, relu)};
  const Input x({4});
  Model model({x}, {Dense(2)(base(x))});
  CHECK(model.count_params() == 25 + 12);
  Sequential chain{Input({4}), base, Dense(2)};
  CHECK(chain.count_params() == 25 + 12);
  model.compile("sgd", "mse");
  const auto before = flat(base.get_weights());
  model.fit(uniform({8, 4}, 1), uniform({8, 2}, 2), {.verbose = 0});
  CHECK(flat(base.get_weights()) != before);
  CHECK(flat(Layer(chain.layers()[0]).get_weights()) == flat(base.get_weights()));
}

TEST_CASE("models: a Sequential without Input is built by its first data") {
  Sequential model{Dense(4, relu), Dense(1)};
  CHECK(message_of([&] { model.count_params(); }).find("does not know yet what a sample looks like") !=
        std::string::npos);
  model.compile("adam", "mse");
  model.fit(uniform({8, 3}, 1), uniform({8, 1}, 2), {.verbose = 0});
  CHECK(model.count_params() == 21);
  Sequential other;
  other.add(Dense(4));
  other.add(Dense(2));
  other.build({6});
  CHECK(other.count_params() == 38);
}

TEST_CASE("models: ten thousand layers come and go without deep recursion") {
  SymbolicTensor x = Input({2});
  const auto first = x;
  for (int i = 0; i < 10'000; ++i) x = Activation(relu)(x);
  const Model model({first}, {x});
  CHECK(model.layers().size() == 10'001);
}
