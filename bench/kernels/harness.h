// For the micro-benchmarks and checks of kernels: operands with guard bytes, a run of any kernel by any number of
// threads, the reference beside it, least time of many runs.
#pragma once
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/host/kernel.h"
#include "base/convert.h"
#include "base/random.h"
#include "base/team.h"
#include "base/with_type.h"

namespace harness {

using namespace millpond;
using backend::Arguments;
using backend::Request;
using backend::host::Kernel;
using graph::TensorType;

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Processor time of this thread: what others do on a busy machine does not count (their use of the caches does).
inline double now_alone() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Bytes between two guards.
class Buffer {
 public:
  static constexpr size_t kGuard = 128;
  explicit Buffer(size_t bytes) : bytes_(bytes), size_(bytes + 2 * kGuard + 64) {
    base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (size_ > (4u << 20)) madvise(base_, size_, MADV_HUGEPAGE);
    std::memset(base_, 0xa5, kGuard);
    std::memset(base_ + kGuard + bytes, 0xa5, size_ - kGuard - bytes);
  }
  ~Buffer() { munmap(base_, size_); }
  Buffer(const Buffer&) = delete;
  std::byte* data() const { return base_ + kGuard; }
  size_t bytes() const { return bytes_; }
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (base_[i] != std::byte{0xa5}) return false;
    for (size_t i = kGuard + bytes_; i < size_; ++i)
      if (base_[i] != std::byte{0xa5}) return false;
    return true;
  }

 private:
  std::byte* base_;
  size_t bytes_, size_;
};

using Fill = std::function<double(int64_t)>;
inline Fill uniform(uint64_t seed, double lo = -1, double hi = 1) {
  return [=](int64_t i) {
    return lo + (hi - lo) * double(mix64(seed * 0x9e3779b97f4a7c15ull + uint64_t(i)) >> 11) * 0x1p-53;
  };
}
inline Fill below(uint64_t seed, int64_t n) {
  return [=](int64_t i) { return double(mix64(seed * 77777 + uint64_t(i)) % uint64_t(n)); };
}
inline Fill constant(double v) {
  return [=](int64_t) { return v; };
}

inline void fill(const TensorType& t, void* p, const Fill& f) {
  for (int64_t i = 0; i < t.shape.size(); ++i) {
    const double v = f(i);
    with_type(t.dtype, [&]<class T>() { store(static_cast<T*>(p), i, v); });
  }
}
inline double read(const TensorType& t, const void* p, int64_t i) {
  return with_type(t.dtype, [&]<class T>() { return convert<double>(load(static_cast<const T*>(p), i)); });
}

/// One operator with its operands on one backend.
class Call {
 public:
  Call(const backend::Backend& backend, const graph::Operator& op, std::vector<TensorType> inputs,
       const std::vector<Fill>& fills, int threads, std::vector<graph::Overlap> over = {})
      : types_(inputs) {
    outputs_ = op.infer(inputs);
    kernel_ = backend::host::ready(backend.make(op, Request{inputs, outputs_, threads}));
    for (size_t i = 0; i < inputs.size(); ++i) {
      in_.push_back(std::make_unique<Buffer>(size_t(inputs[i].bytes().value)));
      fills_.push_back(fills[std::min(i, fills.size() - 1)]);
      ins_.push_back(in_.back()->data());
    }
    graph::MemoryFacts facts = op.memory();
    for (size_t o = 0; o < outputs_.size(); ++o) {
      int same = -1;
      for (auto& x : facts.in_place)
        if (x.output == int(o)) same = x.input;
      for (auto& x : over)
        if (x.output == int(o)) same = x.input;
      out_.push_back(same >= 0 ? nullptr : std::make_unique<Buffer>(size_t(outputs_[o].bytes().value)));
      outs_.push_back(same >= 0 ? ins_[size_t(same)] : out_.back()->data());
    }
    scratch_ = std::make_unique<Buffer>(size_t(kernel_->workspace().value));
    arguments_ = {ins_.data(), outs_.data(), scratch_->data()};
    refill();
  }
  void refill() {
    for (size_t i = 0; i < ins_.size(); ++i) fill(types_[i], ins_[i], fills_[i]);
    for (auto& o : out_)
      if (o) std::memset(o->data(), 0xff, o->bytes());
    std::memset(scratch_->data(), 0xff, scratch_->bytes());
  }
  /// Operands and results of other calls.
  void bind_in(int i, void* p) { ins_[size_t(i)] = p; }
  void bind_out(int i, void* p) { outs_[size_t(i)] = p; }
  Kernel& kernel() { return *kernel_; }
  const Arguments& arguments() const { return arguments_; }
  const std::vector<TensorType>& outputs() const { return outputs_; }
  void* out(int i) const { return outs_[size_t(i)]; }
  void* in(int i) const { return ins_[size_t(i)]; }
  void run() { backend::host::run_alone(*kernel_, arguments_); }
  /// Blocks in another order and with other members: must give the same bits.
  void run_backwards(int threads) {
    const auto phases = kernel_->phases();
    for (int p = 0; p < int(phases.size()); ++p)
      for (int b = phases[size_t(p)] - 1; b >= 0; --b)
        kernel_->run(arguments_, p, b, phases[size_t(p)] == 1 ? 0 : (b * 7 + 1) % threads);
  }
  bool intact() const {
    for (auto& b : in_)
      if (!b->intact()) return false;
    for (auto& b : out_)
      if (b && !b->intact()) return false;
    return scratch_->intact();
  }

 private:
  std::vector<TensorType> types_, outputs_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<Buffer>> in_, out_;
  std::vector<Fill> fills_;
  std::unique_ptr<Buffer> scratch_;
  std::vector<void*> ins_, outs_;
  Arguments arguments_;
};

/// One processor for each member: on a busy machine both may otherwise share one for long.
inline void pin(int member) {
  thread_local int at = -1;
  if (at == member) return;
  at = member;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(member, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// Runs kernels one after the other by all members of a team, blocks claimed from counters: what
/// backend::host::Executor does.
class Stage {
 public:
  void add(Call& c) {
    const auto phases = c.kernel().phases();
    for (int p = 0; p < int(phases.size()); ++p) steps_.push_back({&c.kernel(), c.arguments(), p, phases[size_t(p)]});
  }
  void run(Team& team) {
    if (team.size() == 1) {
      for (auto& s : steps_)
        for (int b = 0; b < s.blocks; ++b) s.kernel->run(s.arguments, s.phase, b, 0);
      return;
    }
    const size_t members = size_t(team.size());
    if (claims_.size() != steps_.size() * members)
      claims_ = std::vector<Claim>(steps_.size() * members), done_ = std::vector<Done>(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      done_[i].blocks.store(0, std::memory_order_relaxed);
      for (size_t m = 0; m < members; ++m) {
        claims_[i * members + m].next.store(int(size_t(steps_[i].blocks) * m / members), std::memory_order_relaxed);
        claims_[i * members + m].end = int(size_t(steps_[i].blocks) * (m + 1) / members);
      }
    }
    team.run([&](int m) {
      pin(m);
      for (size_t i = 0; i < steps_.size(); ++i) {
        const Step& s = steps_[i];
        int mine = 0;
        for (size_t k = 0; k < members; ++k) {  // own share first, then what others have left
          Claim& c = claims_[i * members + (size_t(m) + k) % members];
          for (int b; c.next.load(std::memory_order_relaxed) < c.end &&
                      (b = c.next.fetch_add(1, std::memory_order_relaxed)) < c.end;
               ++mine)
            s.kernel->run(s.arguments, s.phase, b, m);
        }
        if (mine) done_[i].blocks.fetch_add(mine, std::memory_order_acq_rel);
        while (done_[i].blocks.load(std::memory_order_acquire) < s.blocks) __builtin_ia32_pause();
      }
    });
  }

 private:
  struct Step {
    Kernel* kernel;
    Arguments arguments;
    int phase, blocks;
  };
  struct alignas(64) Claim {
    std::atomic<int> next{0};
    int end = 0;
  };
  struct alignas(64) Done {
    std::atomic<int> blocks{0};
  };
  std::vector<Step> steps_;
  std::vector<Claim> claims_;
  std::vector<Done> done_;
};

/// Least seconds of one run.
template <class F>
double least(F&& f, double seconds = 0.3, bool alone = true) {
  const auto clock = alone ? now_alone : now;
  int batch = 1;
  for (;;) {
    const double a = now();
    for (int i = 0; i < batch; ++i) f();
    if (now() - a > 50e-6 || batch > 100000) break;
    batch *= 2;
  }
  double best = 1e9;
  const double end = now() + seconds;
  int n = 0;
  do {
    const double a = clock();
    for (int i = 0; i < batch; ++i) f();
    best = std::min(best, (clock() - a) / batch);
  } while (now() < end || ++n < 5);
  return best;
}

struct Tolerance {
  double relative = 2e-6, absolute = 1e-6;
};

/// Compares with the reference, both orders of blocks, guards. Prints what is wrong; returns whether all is right.
inline bool check(const char* what, const graph::Operator& op, const std::vector<TensorType>& inputs,
                  const std::vector<Fill>& fills, Tolerance tol = {}, std::vector<graph::Overlap> over = {}) {
  Call fast(backend::cpu_backend(), op, inputs, fills, 3, over),
      slow(backend::reference_backend(), op, inputs, fills, 1, {});
  if (fast.kernel().slow()) {
    std::printf("%-40s is slow\n", what);
    return true;
  }
  fast.run();
  slow.run();
  std::vector<std::vector<std::byte>> first;
  bool ok = true;
  for (size_t o = 0; o < fast.outputs().size(); ++o) {
    const TensorType& t = fast.outputs()[o];
    double worst = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < t.shape.size(); ++i) {
      const double x = read(t, fast.out(int(o)), i), y = read(t, slow.out(int(o)), i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      const double e = std::fabs(x - y) / (tol.absolute + tol.relative * std::fabs(y));
      if (!(e <= worst)) worst = e, at = i;
    }
    if (!(worst <= 1)) {
      std::printf("WRONG %s: output %zu element %ld: %.9g, reference %.9g (%.1f times the tolerance)\n", what, o,
                  long(at), read(t, fast.out(int(o)), at), read(t, slow.out(int(o)), at), worst);
      ok = false;
    }
    const std::byte* p = static_cast<std::byte*>(fast.out(int(o)));
    first.emplace_back(p, p + t.bytes().value);
  }
  if (!fast.intact()) std::printf("WRONG %s: guard bytes\n", what), ok = false;
  fast.refill();
  fast.run_backwards(3);
  for (size_t o = 0; o < first.size(); ++o)
    if (!first[o].empty() && std::memcmp(first[o].data(), fast.out(int(o)), first[o].size()) != 0)
      std::printf("WRONG %s: output %zu depends on the order of blocks\n", what, o), ok = false;
  if (!fast.intact()) std::printf("WRONG %s: guard bytes (backwards)\n", what), ok = false;
  return ok;
}

inline TensorType f32(Shape s) { return {DType::kFloat32, s}; }

}  // namespace harness
