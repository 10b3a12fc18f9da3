// A stranger's program: the public header alone, nothing of src. It trains, saves, and an error of the library reaches it as what it is.
#include <millpond/millpond.h>

#include <cstdio>

using namespace millpond;

int main() {
  set_random_seed(1);
  Sequential model{Input({2}), Dense(4, relu), Dense(1)};
  model.compile({.optimizer = Adam(1e-2), .loss = "mse"});
  Tensor x(DType::kFloat32, {32, 2}), y(DType::kFloat32, {32, 1});
  for (size_t i = 0; i < 64; ++i) x.values<float>()[i] = static_cast<float>(i % 7) / 7;
  const History history = model.fit(x, y, {.batch_size = 8, .epochs = 3, .verbose = 0});
  if (!(history["loss"].back() < history["loss"].front())) return 1;
  try {
    Dense(0);
    return 2;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
