#include "ops/scatter_add.h"

#include <cstring>

#include "backend/cpu/copy_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/typed_rows.h"

namespace millpond::backend::cpu {
namespace {

// A block owns a part of the table: it writes the zeros (or what they are added onto), then adds all rows that fall
// there, in order. A large table is cut into runs of rows, and every block looks through the whole index; a small table
// with many rows is cut into columns, which share the work evenly wherever the rows fall.
class ScatterAdd final : public Kernel {
 public:
  ScatterAdd(int64_t count, int64_t width, int64_t n, DType index, DType type, bool onto)
      : onto_(onto),
        element_(size_of(type).value),
        add_(type == DType::kFloat32 ? nullptr : typed_rows().add(as_stored(type))),
        count_(count),
        width_(width),
        n_(n),
        index_(index),
        by_columns_(n > count && width >= 64),
        stream_(count * width * size_of(type).value >= kStreamBytes) {
    const double add = double(n) * (2 + byte_time(8.0 * double(width))), clear = byte_time(4.0 * double(count * width));
    const double look = 0.5 * double(n);  // of each block
    const int most = std::clamp(int((add + clear) / (4 * look + 1)), 1, kMaxBlocks);
    const int64_t parts = by_columns_ ? width : count;
    runs_ = width && count ? Runs(parts, (add + clear) / double(parts), by_columns_ ? 16 : 1, most) : Runs();
    blocks_[0] = runs_.blocks;
  }
  std::span<const int> phases() const override { return blocks_; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    const int64_t begin = runs_.begin(block), end = runs_.end(block);
    std::byte* const table = a.output<std::byte>(0);
    const Labels index = labels(a, 0, index_, 0);
    const std::byte* const onto = onto_ ? a.input<std::byte>(2) : nullptr;
    // rows [first, last) of the table, and of them columns [left, right)
    const int64_t first = by_columns_ ? 0 : begin, last = by_columns_ ? count_ : end;
    const int64_t left = by_columns_ ? begin : 0, right = by_columns_ ? end : width_;
    const int64_t row = width_ * element_, bytes = (right - left) * element_;
    if (by_columns_) {
      for (int64_t r = 0; r < count_; ++r) {
        const int64_t at = r * row + left * element_;
        if (!onto)
          kernels_.zero(table + at, bytes, false);
        else if (onto != table)
          std::memcpy(table + at, onto + at, size_t(bytes));
      }
    } else if (!onto) {
      kernels_.zero(table + first * row, (last - first) * row, stream_);
    } else if (onto != table) {
      std::memcpy(table + first * row, onto + first * row, size_t((last - first) * row));
    }
    if (!add_)
      return kernels_.scatter(reinterpret_cast<float*>(table), count_, width_, first, last, left, right, index,
                              a.input<float>(1), n_);
    const std::byte* const rows = a.input<std::byte>(1) + left * element_;
    for (int64_t i = 0; i < n_; ++i)
      if (const int64_t k = label_below(index, i, count_); k >= first && k < last)
        add_(rows + i * row, table + k * row + left * element_, right - left);
  }

 private:
  bool onto_;
  int64_t element_;
  void (*add_)(const void*, void*, int64_t);  // null: float32
  int64_t count_, width_, n_;
  DType index_;
  bool by_columns_, stream_;
  Runs runs_;
  int blocks_[1];
  const CopyKernels& kernels_ = copy_kernels();
};

}  // namespace

std::unique_ptr<Kernel> scatter_add(const ops::ScatterAdd& op, const Request& request) {
  return std::make_unique<ScatterAdd>(op.count, request.outputs[0].shape[1], request.inputs[0].shape.size(),
                                      request.inputs[0].dtype, request.inputs[1].dtype, op.onto);
}

}  // namespace millpond::backend::cpu
