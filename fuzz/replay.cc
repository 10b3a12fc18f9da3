// A fuzz target as a plain program, for compilers without libFuzzer: runs every seed, then mutations of them that are
// the same on every machine.
//   fuzz_npy FOLDER [--mutations 5000] [--seed 1]
// When the target crashes, the input is in ./crash-<n>.bin, and `fuzz_npy crash-<n>.bin` runs it alone.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {
using Bytes = std::vector<uint8_t>;
Bytes input;
long number = 0;

// The distributions of the standard library differ between libraries; the engine itself does not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t below(size_t n) { return n ? size_t(engine_() % n) : 0; }

 private:
  std::mt19937_64 engine_;
};

void put(Bytes& b, size_t at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size && at + i < b.size(); ++i) b[at + i] = uint8_t(value >> (8 * i));
}

Bytes mutated(const std::vector<Bytes>& seeds, Random& random) {
  static constexpr uint64_t kEdges[] = {0,
                                        1,
                                        2,
                                        7,
                                        8,
                                        127,
                                        128,
                                        255,
                                        256,
                                        32767,
                                        65535,
                                        65536,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x100000000,
                                        0x7fffffffffffffff,
                                        0x8000000000000000,
                                        0xffffffffffffffff};
  Bytes b = seeds[random.below(seeds.size())];
  for (size_t changes = 1 + random.below(random.below(4) ? 3 : 12); changes > 0; --changes) {
    const size_t at = random.below(b.size());
    switch (random.below(24)) {  // most keep the length: a file that is too short or too long is refused at once
      case 0:
      case 10:
      case 11:
        if (!b.empty()) b[at] ^= uint8_t(1 << random.below(8));
        break;
      case 1:
      case 12:
      case 13:
        put(b, at, random.below(256), 1);
        break;
      case 2:
      case 14:
      case 15:
      case 16:
        put(b, at, kEdges[random.below(std::size(kEdges))], size_t{1} << random.below(4));
        break;
      case 3:
        b.resize(at);
        break;
      case 4: {  // a piece twice
        const Bytes piece(b.begin() + long(at), b.begin() + long(std::min(b.size(), at + 1 + random.below(32))));
        b.insert(b.begin() + long(random.below(b.size() + 1)), piece.begin(), piece.end());
        break;
      }
      case 5:
        b.erase(b.begin() + long(at), b.begin() + long(std::min(b.size(), at + 1 + random.below(16))));
        break;
      case 6:
      case 17:
      case 18: {  // a piece of another seed
        const Bytes& other = seeds[random.below(seeds.size())];
        const size_t from = random.below(other.size()), n = std::min(other.size() - from, random.below(64));
        for (size_t i = 0; i < n && at + i < b.size(); ++i) b[at + i] = other[from + i];
        break;
      }
      case 7:
      case 19:
      case 20:
      case 21: {  // a number moved a little, or somewhere else in the file
        uint64_t value = 0;
        const size_t size = size_t{1} << random.below(4), from = random.below(b.size());
        for (size_t i = 0; i < size && from + i < b.size(); ++i) value |= uint64_t(b[from + i]) << (8 * i);
        put(b, random.below(2) ? from : at, value + random.below(33) - 16, size);
        break;
      }
      case 8:  // digits and brackets: headers of text
        put(b, at, uint64_t("0123456789()[]{},:'<>- TF"[random.below(25)]), 1);
        break;
      default:
        if (!b.empty()) b[at] = uint8_t(b[at] + random.below(5) - 2);
    }
  }
  return b;
}

void save_input(int signal) {
  char name[64];
  const int n = std::snprintf(name, sizeof name, "crash-%ld.bin", number);
  const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  (void)!write(fd, input.data(), input.size());
  (void)!write(2, "fuzz: crashed; the input is in ", 31);
  (void)!write(2, name, size_t(n));
  (void)!write(2, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(Bytes b) {
  input = std::move(b);
  ++number;
  // A copy of exactly this size, so that a sanitizer sees the first byte behind it.
  Bytes exact(input.begin(), input.end());
  exact.shrink_to_fit();
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}
}  // namespace

int main(int argc, char** argv) {
  long mutations = 5000;
  uint64_t seed = 1;
  std::vector<Bytes> seeds;
  const auto load = [&](const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  };
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--mutations") && i + 1 < argc)
      mutations = std::atol(argv[++i]);
    else if (!std::strcmp(argv[i], "--seed") && i + 1 < argc)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else if (std::filesystem::is_directory(argv[i])) {
      std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(argv[i]), {});
      std::sort(files.begin(), files.end());
      for (const auto& f : files) load(f);
    } else
      load(argv[i]), mutations = 0;
  }
  if (seeds.empty()) return std::fprintf(stderr, "fuzz: no seeds\n"), 2;
  for (int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) std::signal(s, save_input);
  for (const Bytes& s : seeds) run(s);
  if (mutations > 0 && millpond::fuzz::accepted == 0)
    return std::fprintf(stderr, "fuzz: not one seed is a good file; this would test nothing\n"), 1;
  Random random(seed);
  for (long i = 0; i < mutations; ++i) {
    alarm(20);  // an input that takes this long is a bug, too
    run(mutated(seeds, random));
  }
  alarm(0);
  std::printf("fuzz: %zu seeds and %ld mutations, %ld of them good files, none crashed\n", seeds.size(), mutations,
              millpond::fuzz::accepted);
}
