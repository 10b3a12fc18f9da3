// What this machine can do: the rate of LIBXSMM's matrix product on operands that stay in the cache of a core, on 1..n
// threads at once, and the bandwidth of a copy. Prints JSON: {"gemm_gflops": {"1": .., "2": ..}, "copy_gbs": {...}}
#include <libxsmm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

constexpr int kM = 64, kN = 64, kK = 256;  // 64 + 64 + 16 KiB: L2
constexpr int kRounds = 60;

// Work of all threads together per second, the best of some rounds: the machine may be busy in others.
template <class Work>
double rate(int threads, double amount, Work work) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> ready{0};
    std::vector<double> took(static_cast<size_t>(threads));
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        auto run = work(t);
        run();  // warm
        for (ready.fetch_add(1); ready.load() < threads;) {
        }
        const auto began = Clock::now();
        run();
        took[static_cast<size_t>(t)] = seconds_since(began);
      });
    for (std::thread& t : team) t.join();
    best = std::max(best, amount * threads / *std::max_element(took.begin(), took.end()));
  }
  return best;
}

struct Block {
  explicit Block(size_t floats) : data(static_cast<float*>(std::aligned_alloc(64, floats * sizeof(float)))) {
    std::fill_n(data, floats, 1e-3f);
  }
  ~Block() { std::free(data); }
  Block(const Block&) = delete;
  float* data;
};

}  // namespace

int main() {
  libxsmm_init();
  const int all = int(std::max(1u, std::thread::hardware_concurrency()));
  const int m = kN, n = kM, k = kK;
  const auto kernel = libxsmm_smmdispatch(m, n, k, &m, &k, &m, nullptr, nullptr, nullptr, nullptr);
  if (!kernel) return std::fputs("peak: LIBXSMM has no kernel for this processor\n", stderr), 1;
  static constexpr int kCalls = 300;
  static constexpr size_t kCopy = size_t{16} << 20;
  std::string gemm, copy;
  for (int threads = 1; threads <= all; threads *= 2) {
    const double flops = rate(threads, 2.0 * kM * kN * kK * kCalls, [&](int) {
      return [&, a = std::make_shared<Block>(size_t{kM} * kK), b = std::make_shared<Block>(size_t{kK} * kN),
              c = std::make_shared<Block>(size_t{kM} * kN)] {
        for (int i = 0; i < kCalls; ++i) kernel(b->data, a->data, c->data);
      };
    });
    const double bytes = rate(threads, 2.0 * kCopy, [&](int) {
      return [&, from = std::make_shared<Block>(kCopy / 4), to = std::make_shared<Block>(kCopy / 4)] {
        std::memcpy(to->data, from->data, kCopy);
      };
    });
    const char* comma = threads == 1 ? "" : ", ";
    char text[64];
    std::snprintf(text, sizeof text, "%s\"%d\": %.1f", comma, threads, flops / 1e9), gemm += text;
    std::snprintf(text, sizeof text, "%s\"%d\": %.1f", comma, threads, bytes / 1e9), copy += text;
  }
  std::printf("{\"gemm_gflops\": {%s}, \"copy_gbs\": {%s}}\n", gemm.c_str(), copy.c_str());
}
