#include "ops/scatter_add.h"

#include <cstring>

#include "backend/cpu/copy_kernels.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

// A block owns a part of the table: it writes the zeros (or what they are added onto), then adds all rows that fall
// there, in order. A large table is cut into runs of rows, and every block looks through the whole index; a small table
// with many rows is cut into columns, which share the work evenly wherever the rows fall.
class ScatterAdd final : public Kernel {
 public:
  ScatterAdd(int64_t count, int64_t width, int64_t n, DType index, bool onto)
      : onto_(onto),
        count_(count),
        width_(width),
        n_(n),
        index_(index),
        by_columns_(n > count && width >= 64),
        stream_(count * width * 4 >= kStreamBytes) {
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
    float* const table = a.output<float>(0);
    const Labels index = labels(a, 0, index_, 0);
    const float* const onto = onto_ ? a.input<float>(2) : nullptr;
    if (by_columns_) {
      if (!onto)
        for (int64_t r = 0; r < count_; ++r) kernels_.fill(table + r * width_ + begin, 0, end - begin, false);
      else if (onto != table)
        for (int64_t r = 0; r < count_; ++r)
          std::memcpy(table + r * width_ + begin, onto + r * width_ + begin, size_t(end - begin) * 4);
      kernels_.scatter(table, count_, width_, 0, count_, begin, end, index, a.input<float>(1), n_);
    } else {
      if (!onto)
        kernels_.zero(reinterpret_cast<std::byte*>(table + begin * width_), (end - begin) * width_ * 4, stream_);
      else if (onto != table)
        std::memcpy(table + begin * width_, onto + begin * width_, size_t((end - begin) * width_) * 4);
      kernels_.scatter(table, count_, width_, begin, end, 0, width_, index, a.input<float>(1), n_);
    }
  }

 private:
  bool onto_;
  int64_t count_, width_, n_;
  DType index_;
  bool by_columns_, stream_;
  Runs runs_;
  int blocks_[1];
  const CopyKernels& kernels_ = copy_kernels();
};

}  // namespace

std::unique_ptr<Kernel> scatter_add(const ops::ScatterAdd& op, const Request& request) {
  if (request.inputs[1].dtype != DType::kFloat32) return slow(op, request);
  return std::make_unique<ScatterAdd>(op.count, request.outputs[0].shape[1], request.inputs[0].shape.size(),
                                      request.inputs[0].dtype, op.onto);
}

}  // namespace millpond::backend::cpu
