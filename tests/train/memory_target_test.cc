// Training with CompileOptions::memory_target: the same weights in less memory.
#include <doctest/doctest.h>

#include <cstring>

#include "base/format.h"
#include "base/segment.h"
#include "train/support.h"

using namespace millpond;

namespace {

struct Case {
  std::string name;
  std::function<Model()> make;
  Tensor x, y;
  std::string loss;
};

// Two stages of residual blocks with normalisation whose statistics run on.
Model residual() {
  const Input in({16, 16, 3});
  SymbolicTensor x = Conv2D(16, {3, 3}, linear, {.padding = "same"})(in);
  for (int i = 0; i < 6; ++i) {
    SymbolicTensor y = ReLU()(BatchNormalization()(Conv2D(16, {3, 3}, linear, {.padding = "same"})(x)));
    y = BatchNormalization()(Conv2D(16, {3, 3}, linear, {.padding = "same"})(y));
    x = ReLU()(Add()({x, y}));
  }
  return Model(in, Dense(4, softmax)(GlobalAveragePooling2D()(x)), "residual");
}

Model transformer() {
  const Input in({24, 32});
  SymbolicTensor x = in;
  for (int i = 0; i < 4; ++i) {
    const SymbolicTensor a = LayerNormalization()(x);
    x = Add()({x, Dropout(0.1)(MultiHeadAttention(4, 8)({a, a}))});
    const SymbolicTensor h = Dense(128, gelu)(LayerNormalization()(x));
    x = Add()({x, Dropout(0.1)(Dense(32)(h))});
  }
  return Model(in, Dense(32)(x), "transformer");
}

Model deep() {
  std::vector<Layer> layers{Input({64})};
  for (int i = 0; i < 24; ++i) layers.push_back(Dense(64, relu));
  layers.push_back(Dense(1));
  return Sequential(layers, "deep");
}

std::vector<Case> cases() {
  return {{"residual", residual, uniform({24, 16, 16, 3}, 1), classes({24}, 4, 2), "sparse_categorical_crossentropy"},
          {"transformer", transformer, uniform({16, 24, 32}, 1), uniform({16, 24, 32}, 2), "mse"},
          {"deep", deep, uniform({256, 64}, 1), uniform({256, 1}, 2), "mse"}};
}

struct Trained {
  std::vector<Tensor> weights;
  History history;
  Bytes arena;
};
Trained trained(const Case& c, Bytes target) {
  set_random_seed(3);
  Model model = c.make();
  model.compile({.optimizer = Adam(1e-3), .loss = c.loss, .memory_target = target});
  Trained t;
  t.history = model.fit(c.x, c.y, {.batch_size = c.x.shape()[0] / 2, .epochs = 3, .verbose = 0});
  t.weights = model.get_weights();
  t.arena = model.memory().account("arena");
  return t;
}

}  // namespace

TEST_CASE("memory_target: training takes what its plan says, less than without, and leaves the same weights") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    set_random_seed(3);
    Model model = c.make();
    model.compile({.optimizer = Adam(1e-3), .loss = c.loss});
    const PlanOptions options{.batch = c.x.shape()[0] / 2, .evaluate = false, .largest_batch = false};
    const MemoryPlan kept = model.plan(options);
    CHECK(kept.memory_target == Bytes{});
    CHECK(kept.recomputed.empty());
    const Bytes target = kept.total - Bytes{kept.arena.value / 3};
    PlanOptions aimed = options;
    aimed.memory_target = target;
    const MemoryPlan plan = model.plan(aimed);
    const std::string text = plan.table();
    INFO(text);
    MESSAGE(format("{}: arena {} to {}, {} calls again, {:.1f} % more arithmetic, {:.1f} % more bytes moved", c.name,
                   kept.arena, plan.arena, plan.recomputed.size(), 100 * plan.more_flops, 100 * plan.more_moved));
    CHECK(plan.target_reached);
    CHECK(plan.total <= target);
    CHECK(plan.arena_kept == kept.arena);
    CHECK(plan.more_flops < 0.35);
    CHECK(!plan.recomputed.empty());
    CHECK(text.find("reached") != std::string::npos);
    CHECK(text.find("once more") != std::string::npos);

    const Trained plain = trained(c, {}), less = trained(c, target);
    CHECK(less.arena.value <= plan.arena.value + 4096);
    CHECK(less.arena < plain.arena);
    CHECK(less.history.notes.empty());
    CHECK(less.history["loss"] == plain.history["loss"]);
    REQUIRE(plain.weights.size() == less.weights.size());
    for (size_t i = 0; i < plain.weights.size(); ++i)
      CHECK(std::memcmp(plain.weights[i].data(), less.weights[i].data(), size_t(plain.weights[i].bytes().value)) == 0);
  }
}

TEST_CASE("memory_target: one that is out of reach trains in the least that there is, and says so") {
  const Case c = cases()[2];
  const Trained plain = trained(c, {}), least = trained(c, Bytes{1});
  CHECK(least.arena < plain.arena);
  REQUIRE(least.history.notes.size() == 1);
  CHECK(least.history.notes[0].starts_with("note: the memory target 1 B is not reached; training takes "));
  Model model = c.make();
  model.compile({.optimizer = Adam(1e-3), .loss = c.loss, .memory_target = Bytes{1}});
  const MemoryPlan plan = model.plan({.batch = 128, .largest_batch = false});
  CHECK(!plan.target_reached);
  CHECK(plan.memory_target == Bytes{1});
  CHECK(plan.table().find("out of reach") != std::string::npos);
  CHECK(model.plan({.batch = 128, .largest_batch = false, .memory_target = 1_GiB}).recomputed.empty());
  CHECK(message_of([&] { model.compile({.loss = "mse", .memory_target = Bytes{-1}}); }).find("memory_target") !=
        std::string::npos);
}
