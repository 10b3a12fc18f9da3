// A first model: what it will cost in memory, training, and how well it does.
#include <millpond/millpond.h>

#include <cstdio>

#include "data.h"

using namespace millpond;

int main() {
  set_random_seed(1);
  const Points train = points(2000), test = points(500);

  Sequential model{Input({2}), Dense(32, relu), Dense(32, relu), Dense(1, sigmoid)};
  model.compile({.optimizer = Adam(1e-2), .loss = "binary_crossentropy", .metrics = {"accuracy"}});
  model.summary();  // layers, parameters, and every byte that training will take

  const History history =
      model.fit(train.x, train.y, {.batch_size = 50, .epochs = 20, .verbose = 2, .validation_split = 0.1});
  const Results results = model.evaluate(test.x, test.y, {.verbose = 0});
  std::printf("loss %.3f -> %.3f; right on %.1f %% of new points\n", history["loss"].front(), history["loss"].back(),
              100 * results["accuracy"]);
  return results["accuracy"] > 0.9 ? 0 : 1;
}
