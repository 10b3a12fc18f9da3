// The functional API: two inputs, a shared trunk, two outputs with a loss each; weights saved in Keras's own format.
#include <millpond/millpond.h>

#include <cstdio>
#include <filesystem>

#include "data.h"

using namespace millpond;

int main() {
  set_random_seed(2);
  const Points p = points(1000), q = points(1000);

  const Input a({2}, DType::kFloat32, "a"), b({2}, DType::kFloat32, "b");
  const SymbolicTensor trunk = Dense(32, relu)(Concatenate()({a, b}));
  Model model({a, b}, {Dense(1, sigmoid, {.name = "a_inside"})(trunk), Dense(1, sigmoid, {.name = "b_inside"})(trunk)});
  model.compile({.optimizer = Adam(1e-2),
                 .loss = {{"a_inside", "binary_crossentropy"}, {"b_inside", "binary_crossentropy"}},
                 .metrics = {{"a_inside", "accuracy"}, {"b_inside", "accuracy"}},
                 .loss_weights = {{"a_inside", 1}, {"b_inside", 0.5}}});
  model.fit({p.x, q.x}, {p.y, q.y}, {.epochs = 15, .verbose = 2});

  const std::string file = (std::filesystem::temp_directory_path() / "functional.weights.h5").string();
  model.save_weights(file);  // Keras's load_weights reads it
  model.load_weights(file);
  std::filesystem::remove(file);
  const Arrays predictions = model.predict({p.x, q.x});
  std::printf("the first pair: %.2f and %.2f\n", predictions[0].at(0), predictions[1].at(0));
  return 0;
}
