#include <doctest/doctest.h>

#include "base/segment.h"
#include "train/support.h"

using namespace millpond;

namespace {
Bytes sum(const std::vector<std::pair<std::string, Bytes>>& accounts) {
  Bytes s;
  for (const auto& [name, bytes] : accounts) s += bytes;
  return s;
}
}  // namespace

TEST_CASE("plan: weights, slots and staging are what the shapes say, and the parts make the total") {
  Sequential model({Input({100}), Dense(64, relu, {.name = "hidden"}), Dense(1, sigmoid, {.name = "out"})}, "m");
  model.compile("adam", "binary_crossentropy", {"accuracy"});
  const MemoryPlan p = model.plan({.batch = 32});
  CHECK(p.weights == Bytes{4 * (100 * 64 + 64 + 64 + 1)});
  CHECK(p.account("weights/hidden/kernel") == Bytes{4 * 6400});
  CHECK(p.account("weights/hidden") == Bytes{4 * 6464});
  CHECK(p.account("slots/adam.m/hidden/kernel") == Bytes{4 * 6400});
  CHECK(p.account("slots/adam.v") == p.weights);
  CHECK(p.total ==
        p.weights + p.slots + p.activations + p.gradients + p.workspace + p.staging + p.constants + p.padding);
  CHECK(p.total.value - p.arena.value >= p.weights.value + p.slots.value);
  CHECK(sum(p.accounts) + p.padding + p.constants == p.total);
  CHECK(p.arena >= p.lower_bound);
  CHECK(p.programs.size() == 3);
  CHECK(p.programs[0].arena >= p.programs[2].arena);
  CHECK(p.layers.size() >= 2);
  CHECK(p.layers[0].name == "hidden");
  CHECK(p.layers[0].weights == Bytes{4 * 6464});
  CHECK(p.largest_batch > 1000);
  CHECK(p.table(true).find("hidden") != std::string::npos);
  CHECK(model.plan({.batch = 64, .largest_batch = false}).arena > p.arena);
  CHECK(model.plan({.batch = 32, .optimizer = "sgd", .largest_batch = false}).account("slots/adam.m") == Bytes{0});
  CHECK(model.plan({.batch = 32, .optimizer = "none", .largest_batch = false}).slots == Bytes{0});
}

TEST_CASE("plan: nothing is taken for it, and a model too large for any machine can be planned") {
  Bytes before, after;
  each_holding([&](const std::string&, Bytes b) { before += b; });
  Sequential model{Input({1 << 18}), Dense(1 << 18, relu), Dense(1 << 18)};
  model.compile("adam", "mse");
  const MemoryPlan p = model.plan({.batch = 8, .backend = "null"});
  CHECK(p.weights.value == 2 * 4 * ((int64_t{1} << 36) + (1 << 18)));
  CHECK(p.largest_batch == 0);
  each_holding([&](const std::string&, Bytes b) { after += b; });
  CHECK(after.value - before.value < 4096);
}

TEST_CASE("plan: what training takes is what was planned") {
  set_random_seed(1);
  Sequential model{Input({20, 20, 3}), Conv2D(16, {3, 3}, relu), MaxPooling2D({2, 2}), Flatten(), Dense(10, softmax)};
  model.compile("adam", "sparse_categorical_crossentropy", {"accuracy"});
  const MemoryPlan p = model.plan({.batch = 16, .evaluate = false, .largest_batch = false});
  const auto held = [](const char* account) {
    Bytes sum;
    each_holding([&](const std::string& name, Bytes b) { sum += name == account ? b : Bytes{0}; });
    return sum;
  };
  const Bytes arena = held("arena"), weights = held("weights"), slots = held("slots");
  model.fit(uniform({16, 20, 20, 3}, 1), classes({16}, 10, 2), {.batch_size = 16, .verbose = 0});
  const auto within_a_page = [](Bytes got, Bytes planned) {
    return got >= planned && (got - planned).value < 2 * 4096;
  };
  CHECK(within_a_page(held("arena") - arena, p.arena));
  CHECK(within_a_page(held("weights") - weights, p.weights));
  CHECK(within_a_page(held("slots") - slots, p.slots));
}

TEST_CASE("plan: two blocks of convolution, relu and max-pool keep pooled values and winners, never what was pooled") {
  Sequential model{Input({40, 40, 3}),   Conv2D(32, {3, 3}, relu, {.padding = "same"}),
                   MaxPooling2D({2, 2}), Conv2D(48, {3, 3}, relu, {.padding = "same"}),
                   MaxPooling2D({2, 2}), Flatten(),
                   Dense(10, softmax)};
  model.compile("sgd", "sparse_categorical_crossentropy");
  const int64_t batch = 8, data = 40 * 40 * 3 * 4, first = 20 * 20 * 32 * 4,
                second = 10 * 10 * 48 * 4;  // bytes of an image, pooled
  const auto arena = [&](bool passes) {
    return model.plan({.batch = batch, .evaluate = false, .largest_batch = false, .passes = passes, .backend = "null"})
        .arena.value;
  };
  // The peak is the gradient of the second block's input: beside it live the data, both blocks' pooled values (of the
  // second the gradient has taken the place), two bits a value for the winners, and gradients of a filter and a few
  // hundred values.
  const int64_t peak = batch * (data + 2 * first + second + (first + second) / 16), small = 3 * 3 * 32 * 48 * 4 + 8192;
  CHECK(arena(true) >= peak);
  CHECK(arena(true) <= peak + small);
  // As written relu's output, four times what is pooled, is kept for both, and a gradient is as large.
  CHECK(arena(false) >= batch * 4 * (first + second + first));
}

TEST_CASE("plan: the largest batch fits and the next size of batch does not") {
  Sequential model{Input({1000}), Dense(1000, relu), Dense(10)};
  model.compile("sgd", "mse");
  const MemoryPlan p = model.plan({.batch = 8});
  if (p.largest_batch < 1 << 20) {
    CHECK(model.plan({.batch = p.largest_batch, .largest_batch = false}).total.value <= p.memory_free.value * 1.01);
    CHECK(model.plan({.batch = p.largest_batch * 102 / 100 + 1, .largest_batch = false}).total >
          Bytes{p.memory_free.value / 100 * 98});
  }
}

TEST_CASE("summary: layers, shapes, parameters and the plan") {
  clear_session();
  Sequential model({Input({10}), Dense(4, relu), Dense(1)}, "little");
  model.compile("adam", "mse");
  const std::string text = model.summary_text({.batch = 32});
  INFO(text);
  CHECK(
      text.starts_with("Model: \"little\"\n"
                       "Layer (type)     Output Shape  Param #\n"
                       "--------------------------------------\n"
                       "dense (Dense)    (None, 4)          44\n"
                       "dense_1 (Dense)  (None, 1)           5\n"
                       "--------------------------------------\n"
                       "Total params: 49 (196 B)\n"
                       "Trainable params: 49 (196 B)\n"
                       "Non-trainable params: 0 (0 B)\n"
                       "\n"
                       "Memory of training \"little\", batch 32, adam, "));
  CHECK(text.find("largest batch that fits") != std::string::npos);
}
