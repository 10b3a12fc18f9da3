#include "base/team.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

namespace millpond {

namespace {
constexpr uint32_t kSpins = 4000;  // about 50 us; waking a parked thread takes 24 to 109

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

// "max 100000" or "150000 100000" (cgroup v2).
int quota_processors() {
  long long quota = 0, period = 0;
  int n = INT_MAX;
  if (FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    if (std::fscanf(f, "%lld %lld", &quota, &period) == 2 && period > 0 && quota > 0) n = int((quota + period - 1) / period);
    std::fclose(f);
  }
  return std::max(1, n);
}
}  // namespace

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::clamp(allowed, 1, quota_processors());
}

void Spin::wait() {
  if (++count_ < kSpins) _mm_pause();
  else sched_yield();
}

[[gnu::noinline]] void touch_stack() {
  volatile char stack[64 << 10];
  for (size_t i = 0; i < sizeof stack; i += 4096) stack[i] = 0;
}

Team::Team(int size) : size_(std::max(1, size)) {
  for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { serve(i); });
  for (Spin spin; started_.load(std::memory_order_acquire) < size_;) spin.wait();
}

Team::~Team() {
  stop_.store(true);
  round_.fetch_add(1);
  futex(round_, FUTEX_WAKE_PRIVATE, INT_MAX);
  for (std::thread& t : threads_) t.join();
}

void Team::begin(Function function, void* argument) {
  function_ = function;
  argument_ = argument;
  const uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  gate_.store(uint64_t(round) << 32 | 1, std::memory_order_release);
  round_.store(round, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst)) futex(round_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void Team::end() {
  gate_.fetch_and(~uint64_t{1}, std::memory_order_acq_rel);
  for (Spin spin; uint32_t(gate_.load(std::memory_order_acquire)) != 0;) spin.wait();
}

void Team::serve(int member) {
  touch_stack();
  started_.fetch_add(1, std::memory_order_release);
  uint32_t seen = 0;
  for (;;) {
    for (uint32_t n = 0; round_.load(std::memory_order_acquire) == seen && n < kSpins; ++n) _mm_pause();
    while (round_.load(std::memory_order_seq_cst) == seen) {
      parked_.fetch_add(1, std::memory_order_seq_cst);
      futex(round_, FUTEX_WAIT_PRIVATE, seen);
      parked_.fetch_sub(1);
    }
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    uint64_t g = gate_.load(std::memory_order_acquire);
    // The gate of another round: whoever enters that one under this number would enter it again under its own.
    const auto mine = [&] { return (g & 1) && uint32_t(g >> 32) == seen; };
    while (mine() && !gate_.compare_exchange_weak(g, g + 2, std::memory_order_acq_rel)) {
    }
    if (!mine()) continue;  // came too late for this round
    function_(argument_, member);
    gate_.fetch_sub(2, std::memory_order_acq_rel);
  }
}

}  // namespace millpond
