// "Flat" as a test: eager steps by ledger and by resident memory.
#include "base/segment.h"
#include "support/written.h"
#include "train/support.h"

using namespace millpond;

namespace {
Bytes held() {
  Bytes sum;
  each_holding([&](const std::string&, Bytes b) { sum += b; });
  return sum;
}
}  // namespace

TEST_CASE("flat: ten thousand steps of a loop of one's own take no byte, no page and no program") {
  set_random_seed(1);
  const Tensor x = uniform({320, 20}, 1), y = learnable(x);
  Sequential model{Input({20}), Dense(32, relu), BatchNormalization(), Dropout(0.2), Dense(1, sigmoid)};
  Adam optimizer(0.001);
  const Loss loss_fn = "binary_crossentropy";
  Metric accuracy = "accuracy";
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const int64_t row = i % 10 * 32;
      const EagerTensor labels = y.rows(row, row + 32);
      GradientTape tape;
      const EagerTensor p = model(x.rows(row, row + 32), true);
      const EagerTensor loss = loss_fn(labels, p) + 1e-4 * ops::sum(ops::square(model.trainable_variables()[0]));
      const Variables weights = model.trainable_variables();
      optimizer.apply(tape.gradient(loss, weights), weights);
      accuracy.update_state(labels, p);
      if (i % 100 == 99) accuracy.reset_state();
    }
  };
  steps(2000);
  written();
  const Bytes before = held(), used = eager_memory().used;
  const int64_t made = eager_memory().made;
  const Written pages = written();
  steps(10000);
  const Written after = written();
  CHECK(held() == before);
  CHECK(eager_memory().used == used);
  CHECK(eager_memory().made == made);
  if (kExactPages) {
    CHECK(after.heap <= pages.heap);
    CHECK(after.other <= pages.other);
    CHECK(after.stack <= pages.stack);
  }
}

TEST_CASE("flat: a model that was called on values gives every byte back, and clear_session what was idle") {
  const auto once = [] {
    Sequential model{Input({20}), Dense(32, relu), Dense(1)};
    GradientTape tape;
    const EagerTensor loss = ops::mean(model(ops::ones({8, 20}), true));
    const Variables weights = model.trainable_variables();
    SGD(0.1).apply(tape.gradient(loss, weights), weights);
  };
  once();
  clear_session();
  const Bytes before = held();
  for (int i = 0; i < 50; ++i) once();
  CHECK(eager_memory().idle > 0_B);
  clear_session();
  CHECK(eager_memory().idle == 0_B);
  CHECK(held() == before);
}
