// rows: what the kernels that work on rows share: a tensor seen as rows and columns, a kernel of one phase over runs of
// rows.
#pragma once
#include <utility>

#include "backend/cpu/blocks.h"
#include "backend/cpu/labels.h"
#include "backend/cpu/lanes.h"
#include "backend/host/kernel.h"

namespace millpond::backend::cpu {

struct Matrix {
  int64_t rows = 1, cols = 1;
  explicit Matrix(const Shape& s) : rows(s.rank() ? s.without(-1).size() : 1), cols(s.rank() ? s.back() : 1) {}
};

/// Written once and not read soon: results from this size on go past the caches (a third of the traffic of a copy is
/// the reading of lines that are then overwritten). Half of a usual L3: less would be found there by the next kernel.
inline constexpr int64_t kStreamBytes = int64_t(16) << 20;

/// How long n bytes take one thread, in nanoseconds, when they come from memory.
constexpr double byte_time(double n) { return n / 30; }

inline Labels labels(const Arguments& a, int operand, DType t, int64_t first) {
  return {a.input<std::byte>(operand) + first * size_of(t).value, as_stored(t)};
}

/// One phase: f(arguments, begin, end) for each run.
template <class F>
class InRuns final : public Kernel {
 public:
  InRuns(Runs runs, F f) : f_(std::move(f)), runs_(runs), blocks_{runs.blocks} {}
  std::span<const int> phases() const override { return blocks_; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    f_(a, runs_.begin(block), runs_.end(block));
  }

 private:
  F f_;
  Runs runs_;
  int blocks_[1];
};
template <class F>
std::unique_ptr<Kernel> in_runs(Runs runs, F f) {
  return std::make_unique<InRuns<F>>(runs, std::move(f));
}

}  // namespace millpond::backend::cpu
