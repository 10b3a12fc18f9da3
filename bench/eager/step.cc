// What a step of a training loop of one's own takes: mlp_small (100-64-1, batch 32, Adam) with GradientTape, beside the
// same step by train_on_batch and within fit. Losses are compared before anything is timed; the three are timed in turns.
//   eager_step_bench [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/random.h"
#include "millpond/millpond.h"

using namespace millpond;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBatch = 32, kBatches = 313, kSteps = 2000;

Tensor numbers(Shape shape, uint64_t seed, bool labels) {
  Tensor t(DType::kFloat32, shape);
  Random random(seed);
  for (float& v : t.values<float>()) v = labels ? float(random.below(2)) : float(random.uniform());
  return t;
}

Sequential mlp_small() {
  set_random_seed(1);
  clear_session();
  return Sequential{Input({100}), Dense(64, relu), Dense(1, sigmoid)};
}

struct Times {
  std::vector<double> us;
  void print(const char* what) {
    std::sort(us.begin(), us.end());
    std::printf("%-44s least %8.2f us   median %8.2f us   most %8.2f us\n", what, us.front(), us[us.size() / 2],
                us.back());
  }
};

template <class F>
void measure(Times& times, F&& f) {
  const auto start = Clock::now();
  for (int i = 0; i < kSteps; ++i) f(i % kBatches);
  times.us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kSteps);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const Tensor x = numbers({kBatches * kBatch, 100}, 1, false), y = numbers({kBatches * kBatch, 1}, 2, true);
  const auto rows = [](const Tensor& t, int i) { return t.rows(i * kBatch, (i + 1) * kBatch); };

  Sequential planned = mlp_small(), model = mlp_small();
  planned.compile({.optimizer = Adam(), .loss = "binary_crossentropy"});
  Adam optimizer;
  const BinaryCrossentropy loss_fn;
  const Variables weights = [&] {
    (void)model(rows(x, 0));
    return model.trainable_variables();
  }();
  const auto step = [&](int i) {
    GradientTape tape;
    const EagerTensor loss = loss_fn(rows(y, i), model(rows(x, i), true));
    optimizer.apply(tape.gradient(loss, weights), weights);
    return loss;
  };
  for (int i = 0; i < 10; ++i) {
    const double a = planned.train_on_batch(rows(x, i), rows(y, i))["loss"], b = double(step(i));
    if (std::abs(a - b) > 1e-5) {
      std::printf("step %d: the loss is %.8f by train_on_batch, and %.8f by tape\n", i, a, b);
      return 1;
    }
  }
  Times eager, forward, batch, fit;
  for (int round = 0; round < rounds; ++round) {
    measure(eager, [&](int i) { (void)step(i); });
    measure(forward, [&](int i) { (void)loss_fn(rows(y, i), model(rows(x, i))); });
    measure(batch, [&](int i) { (void)planned.train_on_batch(rows(x, i), rows(y, i)); });
    const History h = planned.fit(x, y, {.batch_size = kBatch, .epochs = 6, .verbose = 0, .shuffle = false});
    fit.us.push_back(h.train_seconds.back() * 1e6 / kBatches);
  }
  eager.print("tape, loss, gradient, apply");
  forward.print("model and loss alone");
  batch.print("train_on_batch");
  fit.print("a step of fit");
  // One small operator by itself: what a handle, a look into the table and a note on a tape take.
  const EagerTensor a = ops::ones({8}), b = ops::ones({8});
  const auto operators = [&](const char* what) {
    Times t;
    for (int round = 0; round < rounds; ++round) measure(t, [&](int) { (void)(a + b); });
    t.print(what);
  };
  operators("x + y of 8 numbers");
  {
    GradientTape tape({.persistent = true});
    tape.watch(a);
    Times t;
    for (int round = 0; round < rounds; ++round) {
      tape.reset();
      tape.watch(a);
      measure(t, [&](int) { (void)(a + b); });
    }
    t.print("the same on a tape");
  }
  const EagerMemory m = eager_memory();
  std::printf("pool: %s used, %s idle; programs %s, %lld made\n", to_string(m.used).c_str(), to_string(m.idle).c_str(),
              to_string(m.programs).c_str(), (long long)m.made);
  return 0;
}
