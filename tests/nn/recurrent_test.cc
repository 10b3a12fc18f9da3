#include <doctest/doctest.h>

#include "train/support.h"

using namespace millpond;

TEST_CASE("LSTM: a longer sequence takes more of what is saved, and no more workspace or calls") {
  const auto plan_of = [](int64_t steps) {
    Sequential model{Input({steps, 4}), LSTM(8), Dense(1)};
    model.compile("sgd", "mse");
    return model.plan({.batch = 4, .threads = 1, .evaluate = false, .largest_batch = false});
  };
  const MemoryPlan few = plan_of(10), many = plan_of(1000);
  CHECK(few.programs[0].calls == many.programs[0].calls);
  CHECK(many.arena.value < few.arena.value * 101);
}

TEST_CASE("LSTM: states come out, go in, and several results are told apart") {
  set_random_seed(4);
  const Input a({5, 3}), b({4, 2});
  const std::vector<SymbolicTensor> encoded = LSTM(6, {.return_state = true}).call_all({a});
  REQUIRE(encoded.size() == 3);
  CHECK(encoded[0].shape() == Shape{6});
  const SymbolicTensor decoded = LSTM(6, {.return_sequences = true})({b, encoded[1], encoded[2]});
  CHECK(decoded.shape() == Shape{4, 6});
  Model model({a, b}, {Dense(1)(decoded), encoded[2]}, "pair");
  CHECK(message_of([&] {
          LSTM(6, {.return_state = true, .name = "l"})(a);
        }).starts_with("LSTM \"l\" gives 3 tensors, where one is wanted"));
  model.compile({.optimizer = "adam", .loss = {"mse", "mse"}, .loss_weights = {1, 0.5}});
  const Tensor x = uniform({8, 5, 3}, 1), z = uniform({8, 4, 2}, 2);
  const History h = model.fit({x, z}, {uniform({8, 4, 1}, 3), uniform({8, 6}, 4)}, {.epochs = 20, .verbose = 0});
  CHECK(h["loss"].back() < h["loss"].front());
  // JSON keeps which result is read.
  Model again = model_from_json(model.to_json());
  again.set_weights(model.get_weights());
  const Arrays wanted = model.predict({x, z}), got = again.predict({x, z});
  for (size_t i = 0; i < 2; ++i) CHECK(flat({wanted[i]}) == flat({got[i]}));
}

TEST_CASE("LSTM: what a mask leaves out does not count") {
  set_random_seed(4);
  Sequential model{Input({6}, DType::kInt32), Embedding(5, 3, {.mask_zero = true}), LSTM(4), Dense(1)};
  Tensor left(DType::kInt32, {1, 6}), right(DType::kInt32, {1, 6});
  const int32_t words[] = {3, 1, 4, 0, 0, 0}, others[] = {3, 0, 1, 0, 4, 0};
  for (int i = 0; i < 6; ++i)
    left.values<int32_t>()[size_t(i)] = words[i], right.values<int32_t>()[size_t(i)] = others[i];
  CHECK(Tensor(model.predict(left)).at(0) == Tensor(model.predict(right)).at(0));
}

TEST_CASE("LSTM: wrong shapes are refused with the layer's name") {
  CHECK(message_of([] { LSTM(3, {.name = "l"})(Input({4})); }).find("LSTM \"l\": wants sequences") !=
        std::string::npos);
  CHECK(message_of([] {
          const Input x({4, 2}), h({5}), c({3});
          LSTM(3, {.name = "l"})({x, h, c});
        }).find("a first state has the shape [5], but must have [3]") != std::string::npos);
}

TEST_CASE("models: one with several outputs is a layer of several results") {
  set_random_seed(4);
  const Input x({3});
  const Model two({x}, {Dense(2)(x), Dense(4)(x)}, "two");
  const Input z({3});
  const std::vector<SymbolicTensor> both = Layer(two).call_all({z});
  REQUIRE(both.size() == 2);
  Model model({z}, {Concatenate()({both[0], both[1]})});
  CHECK(model.outputs()[0].shape() == Shape{6});
  CHECK(Tensor(model.predict(uniform({5, 3}, 1))).shape() == Shape{5, 6});
}
