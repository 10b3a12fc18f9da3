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
#include <mutex>
#include <system_error>

#include "base/format.h"
#include "millpond/error.h"

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
    if (std::fscanf(f, "%lld %lld", &quota, &period) == 2 && period > 0 && quota > 0)
      n = int((quota + period - 1) / period);
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
  if (++count_ < kSpins)
    _mm_pause();
  else
    sched_yield();
}

[[gnu::noinline]] void touch_stack() {
  volatile char stack[64 << 10];
  for (size_t i = 0; i < sizeof stack; i += 4096) stack[i] = 0;
}

Team::Team(int size) : size_(std::max(1, size)) {
  try {
    threads_.reserve(size_t(size_ - 1));
    for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { serve(i); });
  } catch (const std::system_error& e) {
    const size_t got = threads_.size();
    dismiss();
    throw Error(Code::kMemory, format("a team of {} threads: the system gave {} and refused the next: {}", size_,
                                      got + 1, e.code().message()))
        .hint("use fewer threads");
  }
  helpers_ = size_ - 1;
  for (Spin spin; started_.load(std::memory_order_acquire) < size_;) spin.wait();
}

Team::~Team() { dismiss(); }

void Team::dismiss() {
  stop_.store(true);
  round_.fetch_add(1);
  futex(round_, FUTEX_WAKE_PRIVATE, INT_MAX);
  for (std::thread& t : threads_) t.join();
}

namespace {

// The teams nobody has leased, and how many processors the running leases have.
struct Teams {
  std::mutex mutex;
  std::vector<std::unique_ptr<Team>> idle;  // the one given back last stands last
  int in_use = 0;
};
Teams& teams() {
  static Teams all;
  return all;
}
thread_local TeamLease* innermost_lease = nullptr;

}  // namespace

TeamLease::TeamLease(int size, bool helpers)
    : size_(std::max(1, size)), wanted_(helpers && size > 1), outer_(innermost_lease) {
  own_.emplace(size_, Team::WithoutHelpers());
  team_ = &*own_;
  processors_ = outer_ ? 0 : 1;  // the thread itself, once
  {
    const std::lock_guard lock(teams().mutex);
    teams().in_use += processors_;
  }
  for (TeamLease* l = outer_; l && wanted_; l = l->outer_)
    if (l->size_ == size_ && l->team_->helped()) team_ = l->team_;
  if (wanted_ && !team_->helped()) {
    try {
      ask();
    } catch (...) {
      const std::lock_guard lock(teams().mutex);
      teams().in_use -= processors_;
      throw;
    }
  }
  innermost_lease = this;
}

TeamLease::~TeamLease() {
  innermost_lease = outer_;
  std::vector<std::unique_ptr<Team>> too_many;  // their threads are joined outside of the lock
  const std::lock_guard lock(teams().mutex);
  teams().in_use -= processors_;
  if (!leased_) return;
  auto& idle = teams().idle;
  idle.push_back(std::move(leased_));
  if (idle.size() == 1) return;
  const int most = usable_threads();
  int helpers = 0;
  for (const auto& t : idle) helpers += t->size() - 1;
  while (idle.size() > 1 && helpers > most) {
    helpers -= idle.front()->size() - 1;
    too_many.push_back(std::move(idle.front()));
    idle.erase(idle.begin());
  }
}

void TeamLease::ask_again() {
  if (refused()) ask();
}

void TeamLease::ask() {
  int mine = processors_;
  for (const TeamLease* l = outer_; l; l = l->outer_) mine += l->processors_;
  Teams& all = teams();
  {
    const std::lock_guard lock(all.mutex);
    // A run that is alone gets what it asks for, be it more than there are processors.
    const int others = all.in_use - mine;
    if (others > 0 && others + size_ > usable_threads()) return;
    processors_ += size_ - 1;
    all.in_use += size_ - 1;
    for (size_t i = all.idle.size(); i-- > 0 && !leased_;)
      if (all.idle[i]->size() == size_) {
        leased_ = std::move(all.idle[i]);
        all.idle.erase(all.idle.begin() + ptrdiff_t(i));
      }
  }
  if (!leased_) {
    try {
      leased_ = std::make_unique<Team>(size_);
    } catch (...) {
      const std::lock_guard lock(all.mutex);
      processors_ -= size_ - 1;
      all.in_use -= size_ - 1;
      throw;
    }
  }
  team_ = leased_.get();
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
