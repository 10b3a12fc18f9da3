// A training loop of one's own: a tape, a loss with a penalty, an optimizer and a metric, as in Keras's guide "Writing a
// training loop from scratch"; and what it holds, which stands still after the first steps.
#include <cstdio>

#include "data.h"

using namespace millpond;

int main() {
  set_random_seed(1);
  const Points train = points(2000), test = points(500);
  const Sequential model{Input({2}), Dense(32, relu), Dense(32, relu), Dense(1, sigmoid)};
  const BinaryCrossentropy loss_fn;
  Adam optimizer(1e-2);
  Metric accuracy = "accuracy";
  metrics::Mean mean_loss;
  constexpr int kBatch = 50, kBatches = 2000 / kBatch;

  EagerMemory warm;
  for (int epoch = 0; epoch < 10; ++epoch) {
    for (int batch = 0; batch < kBatches; ++batch) {
      const EagerTensor x = train.x.rows(batch * kBatch, (batch + 1) * kBatch),
                        y = train.y.rows(batch * kBatch, (batch + 1) * kBatch);
      GradientTape tape;
      const EagerTensor prediction = model(x, true);
      EagerTensor loss = loss_fn(y, prediction);
      for (const Variable& v : model.trainable_variables()) loss += 1e-5 * ops::sum(ops::square(v));
      const Variables weights = model.trainable_variables();
      optimizer.apply(tape.gradient(loss, weights), weights);
      accuracy.update_state(y, prediction);
      mean_loss.update_state(loss);
    }
    std::printf("epoch %d: loss %.4f, accuracy %.4f\n", epoch, mean_loss.result(), accuracy.result());
    mean_loss.reset_state();
    accuracy.reset_state();
    if (epoch == 0) warm = eager_memory();
  }
  accuracy.update_state(test.y, model(test.x));
  const EagerMemory now = eager_memory();
  std::printf("test accuracy %.4f; eager tensors hold %s, and %s idle for the next ones\n", accuracy.result(),
              to_string(now.used).c_str(), to_string(now.idle).c_str());
  return accuracy.result() > 0.9 && now.used == warm.used ? 0 : 1;
}
