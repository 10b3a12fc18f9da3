#include "ops/reduce.h"

#include <cmath>

#include "backend/cpu/reduce_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/typed_rows.h"
#include "base/convert.h"

namespace millpond::backend::cpu {
namespace {

// Dimensions next to each other that both stay or both go are one. What is left is seen as
//
//   outer dimensions, kept or not | `length` | `width`      with width 1, or `width` kept, and `length` not
//
// A result (`outer` kept dimensions x width) is a reduction over slabs [length, width], one for each outer dimension
// that goes. Blocks: runs of the outer kept dimensions; where these are few, of columns; where those are few too, of
// the way to go (slabs x length), whose partial results a second phase adds in order.
struct Way {
  struct Steps {  // dimensions in a row, innermost first
    int rank = 0;
    int64_t size[Shape::kMaxRank], stride[Shape::kMaxRank];
    int64_t total = 1;
    void add(int64_t n, int64_t s) { size[rank] = n, stride[rank++] = s, total *= n; }
    int64_t offset(int64_t i) const {
      if (rank == 1) return i * stride[0];
      int64_t at = 0;
      for (int k = 0; k < rank; i /= size[k++]) at += i % size[k] * stride[k];
      return at;
    }
  };

  Way(const ops::Reduce& op, const Shape& x) {
    struct Dim {
      int64_t size;
      bool goes;
    };
    std::vector<Dim> dims;
    for (int i = 0; i < x.rank(); ++i) {
      if (x[i] == 1) continue;
      const bool goes = std::ranges::count(op.axes, i) > 0;
      if (!dims.empty() && dims.back().goes == goes)
        dims.back().size *= x[i];
      else
        dims.push_back({x[i], goes});
    }
    if (!dims.empty() && !dims.back().goes) width = dims.back().size, dims.pop_back();
    if (!dims.empty() && dims.back().goes) length = dims.back().size, dims.pop_back();
    int64_t stride = length * width;
    for (; !dims.empty(); stride *= dims.back().size, dims.pop_back()) {
      Steps& s = dims.back().goes ? slabs : outer;
      s.add(dims.back().size, stride);
    }
  }
  /// f(slab, first, n) for each stretch of [begin, end) of the way.
  template <class F>
  void pieces(int64_t begin, int64_t end, F&& f) const {
    for (int64_t i = begin, n; i < end; i += n) {
      const int64_t first = i % length;
      n = std::min(length - first, end - i);
      f(i / length, first, n);
    }
  }

  Steps outer, slabs;
  int64_t length = 1, width = 1;
};

class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(const ops::Reduce& op, const Shape& x)
      : mean_(op.kind == ops::Reduce::Kind::kMean),
        kernels_(op.kind == ops::Reduce::Kind::kMax ? reduce_kernels().max : reduce_kernels().sum) {
    start_ = op.kind == ops::Reduce::Kind::kMax ? -INFINITY : 0;
    const Way w(op, x);
    outer_ = w.outer, slabs_ = w.slabs, length_ = w.length, width_ = w.width;
    const int64_t way = slabs_.total * length_;
    if (mean_) count_ = float(way);
    fold_ = best_fold(length_, width_);

    const double time = byte_time(4.0 * double(outer_.total) * double(way) * double(width_)) +
                        4.0 * double(outer_.total * slabs_.total);
    const int64_t wanted = std::clamp<int64_t>(int64_t(time / kBlockTime), 1, kMaxBlocks);
    runs_ = Runs(outer_.total, time / double(outer_.total));
    const int64_t wide = std::clamp<int64_t>(wanted / runs_.blocks, 1, std::max<int64_t>(1, width_ / 256));
    cols_ = Runs(width_, kBlockTime * double(wide) / double(width_), 64, int(wide));
    const int64_t enough = width_ == 1 ? 4096 : 16;
    const int64_t parts =
        std::clamp<int64_t>(wanted / (runs_.blocks * cols_.blocks), 1, std::max<int64_t>(1, way / enough));
    way_ = Runs(way, kBlockTime * double(parts) / double(way), fold_, int(parts));
    if (cols_.blocks > 1) fold_ = 1;
    combine_ = Runs(outer_.total * width_, 0.3 * way_.blocks + 0.5, 64);
    blocks_[0] = runs_.blocks * cols_.blocks * way_.blocks;
    blocks_[1] = combine_.blocks;
  }

  std::span<const int> phases() const override { return {blocks_, size_t(way_.blocks > 1 ? 2 : 1)}; }
  Bytes workspace() const override { return Bytes{way_.blocks > 1 ? way_.blocks * outer_.total * width_ * 4 : 0}; }
  void run(const Arguments& a, int phase, int block, int) const noexcept override {
    const int64_t results = outer_.total * width_;
    float* const partial = reinterpret_cast<float*>(a.scratch);
    if (phase == 1) {
      const int64_t begin = combine_.begin(block);
      return kernels_.combine(partial + begin, results, way_.blocks, count_, a.output<float>(0) + begin,
                              combine_.end(block) - begin);
    }
    const int part = block % way_.blocks, j = block / way_.blocks % cols_.blocks,
              i = block / way_.blocks / cols_.blocks;
    float* const out = way_.blocks > 1 ? partial + part * results : a.output<float>(0);
    const float count = way_.blocks > 1 ? 1.f : count_;
    const int64_t begin = runs_.begin(i), end = runs_.end(i);
    if (width_ == 1 && slabs_.total == 1 && way_.blocks == 1 && outer_.rank <= 1)
      return kernels_.rows(a.input<float>(0) + begin * length_, end - begin, length_, count, out + begin);
    const int64_t col = cols_.begin(j), cols = cols_.end(j) - col;
    for (int64_t o = begin; o < end; ++o) {
      const float* const x = a.input<float>(0) + outer_.offset(o) + col;
      float* const to = out + o * width_ + col;
      if (width_ == 1) {
        double total = double(start_);
        pieces(part, [&](int64_t slab, int64_t first, int64_t n) {
          const double more = kernels_.all(x + slabs_.offset(slab) + first, n);
          total = start_ == 0 ? total + more : more > total || more != more ? more : total;
        });
        *to = float(total / double(count));
      } else {
        kernels_.fill(to, start_, cols);
        pieces(part, [&](int64_t slab, int64_t first, int64_t n) {
          kernels_.columns(x + slabs_.offset(slab) + first * width_, {n, cols, width_, fold_}, to);
        });
        if (count != 1) kernels_.combine(to, 0, 1, count, to, cols);
      }
    }
  }

 private:
  using Steps = Way::Steps;

  /// f(slab, first, n) for each stretch of part `part` of the way.
  template <class F>
  void pieces(int part, F&& f) const {
    const int64_t end = way_.end(part);
    for (int64_t i = way_.begin(part), n; i < end; i += n) {
      const int64_t first = i % length_;
      n = std::min(length_ - first, end - i);
      f(i / length_, first, n);
    }
  }

  bool mean_;
  float start_ = 0, count_ = 1;
  Reduction kernels_;
  Steps outer_, slabs_;
  int64_t length_ = 1, width_ = 1, fold_ = 1;
  Runs runs_, cols_, way_, combine_;
  int blocks_[2];
};

// Every other type: gathered in numbers of eight bytes (typed_rows.h), strips of columns at a time.
class TypedReduce final : public Kernel {
 public:
  TypedReduce(const ops::Reduce& op, const TensorType& x)
      : way_(op, x.shape),
        max_(op.kind == ops::Reduce::Kind::kMax),
        type_(x.dtype),
        gathered_(is_floating(x.dtype) || x.dtype == DType::kBool ? DType::kFloat64
                  : is_signed(x.dtype)                            ? DType::kInt64
                  : x.dtype == DType::kUInt64                     ? DType::kUInt64
                                                                  : DType::kInt64),
        kernels_((max_ ? typed_rows().max : typed_rows().sum)[int(lanes_of(x.dtype))]),
        widen_(typed_rows().widen(as_stored(x.dtype))) {
    const int64_t way = way_.slabs.total * way_.length, results = way_.outer.total * way_.width;
    if (op.kind == ops::Reduce::Kind::kMean) count_ = double(way);
    const double time = byte_time(2.0 * double(size_of(type_).value) * double(results) * double(way)) +
                        4.0 * double(way_.outer.total * way_.slabs.total);
    const int64_t wanted = std::clamp<int64_t>(int64_t(time / kBlockTime), 1, kMaxBlocks);
    strips_ = ceil_div(way_.width, kStrip);
    // whole results first; where these are few, parts of the way
    runs_ = Runs(way_.outer.total * strips_, time / double(way_.outer.total * strips_), way_.width == 1 ? 8 : 1);
    const int64_t parts = std::clamp<int64_t>(wanted / runs_.blocks, 1, std::max<int64_t>(1, way / 16));
    parts_ = Runs(way, kBlockTime * double(parts) / double(way), 1, int(parts));
    combine_ = Runs(results, 0.5 * parts_.blocks + 1, 64);
    blocks_[0] = runs_.blocks * parts_.blocks;
    blocks_[1] = combine_.blocks;
  }
  std::span<const int> phases() const override { return {blocks_, size_t(parts_.blocks > 1 ? 2 : 1)}; }
  Bytes workspace() const override {
    return Bytes{parts_.blocks > 1 ? parts_.blocks * way_.outer.total * way_.width * 8 : 0};
  }
  void run(const Arguments& a, int phase, int block, int) const noexcept override {
    const int64_t results = way_.outer.total * way_.width, bytes = size_of(type_).value;
    Wide acc[kStrip];
    if (phase == 1) {
      for (int64_t at = combine_.begin(block); at < combine_.end(block); at += kStrip) {
        const int64_t n = std::min(kStrip, combine_.end(block) - at);
        start(acc, n);
        for (int p = 0; p < parts_.blocks; ++p)
          join(acc, reinterpret_cast<const Wide*>(a.scratch) + p * results + at, n);
        finish(acc, n, a.output<std::byte>(0) + at * bytes);
      }
      return;
    }
    const int part = block % parts_.blocks;
    for (int64_t k = runs_.begin(block / parts_.blocks); k < runs_.end(block / parts_.blocks); ++k) {
      const int64_t o = k / strips_, col = k % strips_ * kStrip, cols = std::min(kStrip, way_.width - col);
      const std::byte* x = a.input<std::byte>(0) + (way_.outer.offset(o) + col) * bytes;
      start(acc, cols);
      way_.pieces(parts_.begin(part), parts_.end(part), [&](int64_t slab, int64_t first, int64_t n) {
        const std::byte* from = x + (way_.slabs.offset(slab) + first * way_.width) * bytes;
        if (way_.width == 1)
          take(from, n, acc, kernels_.all);
        else
          for (int64_t r = 0; r < n; ++r, from += way_.width * bytes) take(from, cols, acc, kernels_.each);
      });
      const int64_t to = o * way_.width + col;
      if (parts_.blocks > 1)
        std::copy(acc, acc + cols, reinterpret_cast<Wide*>(a.scratch) + part * results + to);
      else
        finish(acc, cols, a.output<std::byte>(0) + to * bytes);
    }
  }

 private:
  static constexpr int64_t kStrip = 512;
  union Wide {
    double d;
    int64_t i;
    uint64_t u;
  };
  void take(const std::byte* x, int64_t n, Wide* acc, void (*f)(const void*, int64_t, void*)) const {
    if (!widen_) return f(x, n, acc);
    alignas(64) std::byte lanes[kStrip * 8];
    const bool each = f == kernels_.each;
    for (int64_t i = 0; i < n; i += kStrip) {
      const int64_t m = std::min(kStrip, n - i);
      widen_(x + i * size_of(type_).value, lanes, m);
      f(lanes, m, acc + (each ? i : 0));
    }
  }
  void start(Wide* acc, int64_t n) const {
    Wide v{};
    if (max_ && gathered_ == DType::kFloat64) v.d = -INFINITY;
    if (max_ && gathered_ == DType::kInt64) v.i = INT64_MIN;
    std::fill(acc, acc + n, v);
  }
  void join(Wide* acc, const Wide* more, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      if (!max_) {
        if (gathered_ == DType::kFloat64)
          acc[i].d += more[i].d;
        else
          acc[i].u += more[i].u;
      } else if (gathered_ == DType::kFloat64 ? more[i].d > acc[i].d || more[i].d != more[i].d
                 : gathered_ == DType::kInt64 ? more[i].i > acc[i].i
                                              : more[i].u > acc[i].u) {
        acc[i] = more[i];
      }
    }
  }
  void finish(Wide* acc, int64_t n, std::byte* to) const {
    if (count_ != 1)
      for (int64_t i = 0; i < n; ++i) acc[i].d /= count_;
    convert(acc, gathered_, to, type_, n);
  }

  Way way_;
  bool max_;
  DType type_, gathered_;
  LaneReduction kernels_;
  void (*widen_)(const void*, void*, int64_t);
  double count_ = 1;
  int64_t strips_ = 1;
  Runs runs_, parts_, combine_;
  int blocks_[2];
};

}  // namespace

std::unique_ptr<Kernel> reduce(const ops::Reduce& op, const Request& request) {
  if (request.inputs[0].shape.size() == 0) return slow(op, request);
  if (!all_float(request.inputs)) return std::make_unique<TypedReduce>(op, request.inputs[0]);
  return std::make_unique<ReduceKernel>(op, request.inputs[0].shape);
}

}  // namespace millpond::backend::cpu
