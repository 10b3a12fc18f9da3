// A program without Python that takes 400,000 bytes at a time. The first argument says what becomes of them:
//   static   a vector that lives as long as the program has them
//   object   an object on the heap, which a variable of main points to
//   lost     nobody has them
//   library  the standard library takes them (a string that a map holds)
//   calm     they are given back
// The second one says what is printed: "epochs" prints a line for each, "silent" nothing.
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

constexpr size_t kEach = 400'000;
std::vector<std::unique_ptr<char[]>> all_batches;

struct Recorder {
  std::vector<char*> records;
  __attribute__((noinline)) void record() {
    char* const block = new char[kEach];  // keeps object
    std::memset(block, 1, kEach);
    records.push_back(block);
  }
};

__attribute__((noinline)) void keep_batch() {
  all_batches.push_back(std::make_unique<char[]>(kEach));  // keeps static
}

__attribute__((noinline)) void lose_batch() {
  char* const block = static_cast<char*>(std::malloc(kEach));  // keeps lost
  std::memset(block, 1, kEach);
  asm volatile("" : : "r"(block) : "memory");  // or the compiler does away with both
}

__attribute__((noinline)) void remember(std::map<int, std::string>& texts, int epoch) {
  texts[epoch] = std::string(kEach, 'x');  // keeps library
}

__attribute__((noinline)) void use_and_free() {
  const std::unique_ptr<char[]> block = std::make_unique<char[]>(kEach);
  std::memset(block.get(), 1, kEach);
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "static", says = argc > 2 ? argv[2] : "silent";
  Recorder* const recorder = new Recorder;
  std::map<int, std::string> texts;
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kEpochs = 60;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    if (what == "static")
      keep_batch();
    else if (what == "object")
      recorder->record();
    else if (what == "lost")
      lose_batch();
    else if (what == "library")
      remember(texts, epoch);
    else
      use_and_free();
    std::this_thread::sleep_for(std::chrono::milliseconds(90));
    if (says == "epochs") std::printf("epoch %d: loss %.3f\n", epoch, 1.0 / (epoch + 1)), std::fflush(stdout);
    if (says == "stream") std::cout << "epoch " << epoch << ": loss " << 1.0 / (epoch + 1) << std::endl;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::ofstream(std::string(std::getenv("EVERYWHERE")) + "/" + std::to_string(getpid()) + ".json")
      << "{\"bytes\": " << kEach * kEpochs << ", \"rounds\": {\"call\": " << kEpochs << ", \"epoch\": " << kEpochs
      << "}, \"seconds\": " << seconds << ", \"in_seconds\": " << kEach * kEpochs << "}";
  return int(texts.size() + recorder->records.size() == 1000000);
}
