// Strided: runs of bytes that lie together in both places, in dimensions that need not: the copy behind slice,
// concatenate and the transposes that keep the last dimension.
#pragma once
#include "backend/cpu/copy_kernels.h"
#include "backend/cpu/rows.h"

namespace millpond::backend::cpu {

/// Dimensions of a copy, outermost first, steps in bytes. Ones are left out; neighbours that lie together in both
/// places are merged.
class Strided {
 public:
  void add(int64_t size, int64_t from, int64_t to) {
    total_ *= size;
    if (size == 1) return;
    if (rank_ && from_[rank_ - 1] == size * from && to_[rank_ - 1] == size * to) {
      size_[rank_ - 1] *= size, from_[rank_ - 1] = from, to_[rank_ - 1] = to;
      return;
    }
    size_[rank_] = size, from_[rank_] = from, to_[rank_++] = to;
  }
  /// After the last add(): elements of `element` bytes.
  void finish(int64_t element) {
    run_ = element;
    if (rank_ && from_[rank_ - 1] == element && to_[rank_ - 1] == element) run_ *= size_[--rank_];
    runs_ = total_ ? total_ * element / run_ : 0;
    if (runs_ == 0) return;
    if (rank_ == 0 && run_ > kPart) {  // one long run: cut it
      const int64_t part = ceil_div(run_, kPart);
      rest_ = run_ - (part - 1) * kPart;
      size_[0] = part, from_[0] = to_[0] = run_ = kPart, rank_ = 1, runs_ = part;
    }
  }

  int64_t runs() const { return runs_; }
  int64_t run_bytes() const { return run_; }
  /// Nanoseconds a run.
  double time() const { return 1.5 + byte_time(2.0 * double(run_)); }

  /// Runs [begin, end).
  void copy(const CopyKernels& k, const std::byte* from, std::byte* to, int64_t begin, int64_t end, bool stream) const {
    if (rank_ == 0) {
      if (begin < end) k.copy(from, run_, to, run_, 1, run_, stream);
      return;
    }
    if (rest_ && end == runs_ && begin < end) {
      --end;
      k.copy(from + end * run_, rest_, to + end * run_, rest_, 1, rest_, stream);
    }
    const int last = rank_ - 1;
    for (int64_t i = begin; i < end;) {
      int64_t left = i, a = 0, b = 0;
      const int64_t at = left % size_[last];
      for (int d = last; d >= 0; left /= size_[d--]) a += left % size_[d] * from_[d], b += left % size_[d] * to_[d];
      const int64_t n = std::min(size_[last] - at, end - i);
      k.copy(from + a, from_[last], to + b, to_[last], n, run_, stream);
      i += n;
    }
  }

 private:
  static constexpr int64_t kPart = int64_t(64) << 10;
  int rank_ = 0;
  int64_t size_[Shape::kMaxRank + 1] = {}, from_[Shape::kMaxRank + 1] = {}, to_[Shape::kMaxRank + 1] = {};
  int64_t total_ = 1, run_ = 1, runs_ = 0, rest_ = 0;
};

/// Steps of a row-major shape, in elements.
inline std::array<int64_t, Shape::kMaxRank> steps_of(const Shape& s) {
  std::array<int64_t, Shape::kMaxRank> steps{};
  int64_t step = 1;
  for (int i = s.rank(); i-- > 0; step *= s[i]) steps[size_t(i)] = step;
  return steps;
}

}  // namespace millpond::backend::cpu
