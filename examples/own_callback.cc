// A callback of one's own: stops when the loss is low enough and lowers the learning rate on the way. Beside it
// RunRecord, which writes down what memory was planned and held (docs/runfile.md tells how to read it).
#include <millpond/millpond.h>

#include <cstdio>

#include "data.h"

using namespace millpond;

struct Coach : Callback {
  void on_epoch_end(int epoch, const Logs& logs) override {
    Optimizer optimizer = model().optimizer();
    std::printf("epoch %d: loss %.4f at learning rate %.4f\n", epoch, logs["loss"], optimizer.learning_rate());
    optimizer.set_learning_rate(optimizer.learning_rate() * 0.95);
    if (logs["loss"] < 0.12) model().stop_training();
  }
};

int main() {
  set_random_seed(3);
  const Points p = points(2000);
  Sequential model{Input({2}), Dense(64, relu), Dense(1, sigmoid)};
  model.compile("adam", "binary_crossentropy", {"accuracy"});
  model.optimizer().set_learning_rate(0.02);

  const MemoryPlan plan = model.plan({.batch = 64});
  std::printf("%s", plan.table(true).c_str());
  const History h = model.fit(p.x, p.y,
                              {.batch_size = 64,
                               .epochs = 60,
                               .verbose = 0,
                               .callbacks = {Coach(), RunRecord("own_callback.pond", {.force = true})}});
  return h["loss"].back() < h["loss"].front() ? 0 : 1;
}
