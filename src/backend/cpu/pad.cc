#include "ops/pad.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "backend/cpu/strided.h"
#include "base/convert.h"
#include "base/with_type.h"

namespace millpond::backend::cpu {
namespace {

bool is_zero(double v) { return v == 0 && !std::signbit(v); }

// Rows of y: the last dimension that is padded, with all behind it. A row is a border from end to end, or border, copy,
// border.
class Pad final : public Kernel {
 public:
  Pad(const ops::Pad& op, const Request& request)
      : element_(size_of(request.inputs[0].dtype).value), zero_(is_zero(op.value)) {
    with_type(request.inputs[0].dtype, [&]<class T>() {
      const T value = convert<T>(op.value);
      std::memcpy(&bits_, &value, sizeof value);
    });
    const Shape& x = request.inputs[0].shape;
    for (int i = 0; i < x.rank(); ++i) {
      const Dim d{op.before[size_t(i)], x[i], op.after[size_t(i)]};
      if (rank_ && d.before == 0 && d.after == 0) {
        Dim& outer = dims_[rank_ - 1];
        outer = {outer.before * d.size, outer.size * d.size, outer.after * d.size};
      } else {
        dims_[rank_++] = d;
      }
    }
    if (rank_ == 0) dims_[rank_++] = {0, 1, 0};
    const Dim row = dims_[--rank_];
    before_ = row.before * element_, size_ = row.size * element_, after_ = row.after * element_;
    int64_t rows = 1;
    for (int d = 0; d < rank_; ++d) rows *= dims_[d].total();
    const int64_t bytes = before_ + size_ + after_;
    stream_ = rows * bytes >= kStreamBytes;
    if (rank_ == 0 && bytes > 0 && before_ + after_ == 0) cut_ = 4096 * element_;  // all one copy
    const int64_t units = cut_ ? ceil_div(size_, cut_) : rows;
    runs_ = Runs(bytes ? units : 0, 4 + byte_time(2.0 * double(cut_ ? cut_ : bytes)));
    blocks_[0] = runs_.blocks;
  }
  std::span<const int> phases() const override { return blocks_; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    const std::byte* const x = a.input<std::byte>(0);
    std::byte* const y = a.output<std::byte>(0);
    const int64_t begin = runs_.begin(block), end = runs_.end(block);
    if (cut_) {
      const int64_t n = std::min(size_, end * cut_) - begin * cut_;
      return kernels_.copy(x + begin * cut_, n, y + begin * cut_, n, 1, n, stream_);
    }
    const int64_t bytes = before_ + size_ + after_;
    for (int64_t r = begin; r < end; ++r) {
      int64_t left = r, from = 0, step = 1;
      bool inside = true;
      for (int d = rank_ - 1; d >= 0; --d) {
        const int64_t at = left % dims_[d].total() - dims_[d].before;
        inside &= at >= 0 && at < dims_[d].size;
        from += at * step;
        step *= dims_[d].size;
        left /= dims_[d].total();
      }
      std::byte* const to = y + r * bytes;
      if (!inside) {
        border(to, bytes);
        continue;
      }
      border(to, before_);
      kernels_.copy(x + from * size_, size_, to + before_, size_, 1, size_, stream_);
      border(to + before_ + size_, after_);
    }
  }

 private:
  struct Dim {
    int64_t before, size, after;
    int64_t total() const { return before + size + after; }
  };
  void border(std::byte* to, int64_t bytes) const {
    if (zero_)
      kernels_.zero(to, bytes, stream_ && bytes >= 4096);
    else if (element_ == 4)
      kernels_.fill(reinterpret_cast<float*>(to), std::bit_cast<float>(uint32_t(bits_)), bytes / 4,
                    stream_ && bytes >= 4096);
    else
      for (int64_t i = 0; i < bytes; i += element_) std::memcpy(to + i, &bits_, size_t(element_));
  }

  int64_t element_;
  uint64_t bits_ = 0;  // of the value, in its type
  bool zero_;
  Dim dims_[Shape::kMaxRank + 1];
  int rank_ = 0;
  int64_t before_ = 0, size_ = 0, after_ = 0, cut_ = 0;
  bool stream_ = false;
  Runs runs_;
  int blocks_[1];
  const CopyKernels& kernels_ = copy_kernels();
};

}  // namespace

std::unique_ptr<Kernel> pad(const ops::Pad& op, const Request& request) { return std::make_unique<Pad>(op, request); }

}  // namespace millpond::backend::cpu
