// A program that trains with our own library and keeps more and more of its tensors: the line is the program's, not the
// library's.
#include <millpond/tensor.h>

#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

constexpr int64_t kEach = 400'000;

int main() {
  std::vector<millpond::Tensor> kept;
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kEpochs = 60;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    kept.emplace_back(millpond::DType::kFloat32, millpond::Shape{kEach / 4});  // keeps
    for (float& value : kept.back().values<float>()) value = float(epoch);
    std::this_thread::sleep_for(std::chrono::milliseconds(90));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::ofstream(std::string(std::getenv("EVERYWHERE")) + "/" + std::to_string(getpid()) + ".json")
      << "{\"bytes\": " << kEach * kEpochs << ", \"rounds\": {\"call\": " << kEpochs << "}, \"seconds\": " << seconds
      << ", \"in_seconds\": " << kEach * kEpochs << "}";
}
