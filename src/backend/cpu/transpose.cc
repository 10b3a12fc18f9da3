#include "ops/transpose.h"

#include "backend/cpu/strided.h"
#include "backend/cpu/typed_rows.h"

namespace millpond::backend::cpu {
namespace {

// y's last dimension is not x's: both lie across each other. Tiles of x's last dimension (`across`) and y's last
// (`down`) are turned in registers; the other dimensions are loops.
class Turn final : public Kernel {
 public:
  struct Dim {
    int64_t size, from, to;  // steps in elements
  };
  Turn(std::span<const Dim> dims, int64_t bytes, int64_t element)
      : element_(element),
        other_(element == 4 ? nullptr : typed_rows().transpose(int(element))),
        stream_(bytes >= kStreamBytes) {
    for (const Dim& d : dims) {
      if (d.from == 1)
        across_ = d;
      else if (d.to == 1)
        down_ = d;
      else
        outer_[rank_++] = d, count_ *= d.size;
    }
    rows_ = ceil_div(down_.size, kRows), cols_ = ceil_div(across_.size, kCols);
    runs_ = Runs(count_ * rows_ * cols_,
                 4 + byte_time(8.0 * double(std::min(kRows, down_.size) * std::min(kCols, across_.size))), 1);
    blocks_[0] = runs_.blocks;
  }
  std::span<const int> phases() const override { return blocks_; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    for (int64_t k = runs_.begin(block); k < runs_.end(block); ++k) {
      const int64_t i = k % rows_ * kRows, j = k / rows_ % cols_ * kCols;
      int64_t left = k / rows_ / cols_, x = i * down_.from + j, y = i + j * across_.to;
      for (int d = rank_ - 1; d >= 0; left /= outer_[d--].size)
        x += left % outer_[d].size * outer_[d].from, y += left % outer_[d].size * outer_[d].to;
      if (other_)
        other_(a.input<std::byte>(0) + x * element_, down_.from, a.output<std::byte>(0) + y * element_, across_.to,
               std::min(kRows, down_.size - i), std::min(kCols, across_.size - j));
      else
        turn_(a.input<float>(0) + x, down_.from, a.output<float>(0) + y, across_.to, std::min(kRows, down_.size - i),
              std::min(kCols, across_.size - j), stream_);
    }
  }

 private:
  static constexpr int64_t kRows = 64, kCols = 512;
  Dim across_{1, 1, 1}, down_{1, 1, 1}, outer_[Shape::kMaxRank];
  int rank_ = 0;
  int64_t element_;
  void (*other_)(const void*, int64_t, void*, int64_t, int64_t, int64_t);  // of elements that have not four bytes
  int64_t count_ = 1, rows_ = 1, cols_ = 1;
  bool stream_;
  Runs runs_;
  int blocks_[1];
  decltype(CopyKernels::transpose) turn_ = copy_kernels().transpose;
};

}  // namespace

std::unique_ptr<Kernel> transpose(const ops::Transpose& op, const Request& request) {
  const Shape &x = request.inputs[0].shape, &y = request.outputs[0].shape;
  const int64_t element = size_of(request.inputs[0].dtype).value;
  const auto own = steps_of(x), to = steps_of(y);
  // what stays together is one dimension
  std::vector<Turn::Dim> dims;
  for (int i = 0; i < y.rank(); ++i) {
    const Turn::Dim d{y[i], own[size_t(op.order[size_t(i)])], to[size_t(i)]};
    if (d.size == 1) continue;
    if (!dims.empty() && dims.back().from == d.size * d.from)
      dims.back() = {dims.back().size * d.size, d.from, d.to};
    else
      dims.push_back(d);
  }
  if (dims.empty() || dims.back().from == 1 || y.size() == 0) {
    Strided s;
    for (const Turn::Dim& d : dims) s.add(d.size, d.from * element, d.to * element);
    if (y.size() == 0) s.add(0, 0, 0);
    s.finish(element);
    const bool stream = y.size() * element >= kStreamBytes;
    return in_runs(Runs(s.runs(), s.time()), [=, k = &copy_kernels()](const Arguments& a, int64_t begin, int64_t end) {
      s.copy(*k, a.input<std::byte>(0), a.output<std::byte>(0), begin, end, stream);
    });
  }
  return std::make_unique<Turn>(dims, y.size() * element, element);
}

}  // namespace millpond::backend::cpu
