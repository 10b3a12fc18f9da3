#include "ops/conv2d.h"

#include <algorithm>

#include "backend/cpu/conv_grid.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kBlockPixels = 420;  // packing a filter's panel costs 12 cycles a row, using it 4 a pixel
constexpr int64_t kBlocks = 16;        // wanted at least, where the work is enough

class Convolution final : public Kernel {
 public:
  Convolution(const ops::Conv2D& op, const Request& request) : threads_(request.threads) {
    const Shape& x = request.inputs[0].shape;
    const Shape& y = request.outputs[0].shape;
    grid_ = ConvGrid::forward(op.window, x, request.inputs[1].shape, op.groups, y[1], y[2]);
    source_ = {nullptr, x[1] * x[2] * x[3], x[2] * x[3], x[3]};
    out_ = {nullptr, y[1] * y[2] * y[3], y[2] * y[3], y[3]};
    const int64_t pixels = grid_.pixels(), panels = int64_t(grid_.panels().size());
    pixel_blocks_ = std::max<int64_t>(1, (pixels + kBlockPixels - 1) / kBlockPixels);
    panel_blocks_ = std::clamp<int64_t>((kBlocks + pixel_blocks_ - 1) / pixel_blocks_, 1, std::max<int64_t>(1, panels));
    blocks_ = int(pixel_blocks_ * panel_blocks_);
  }
  std::span<const int> phases() const override { return {&blocks_, 1}; }
  Bytes workspace() const override { return round_up(grid_.scratch(), 64_B) * threads_; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    const int64_t pb = block / panel_blocks_, cb = block % panel_blocks_, pixels = grid_.pixels(), panels = int64_t(grid_.panels().size());
    Pixels<const float> source = source_;
    source.data = a.input<float>(0);
    Pixels<float> out = out_;
    std::byte* scratch = a.scratch + round_up(grid_.scratch(), 64_B).value * member;
    for (int64_t k = panels * cb / panel_blocks_; k < panels * (cb + 1) / panel_blocks_; ++k) {
      const Panel& panel = grid_.panels()[size_t(k)];
      out.data = a.output<float>(0) + panel.group * grid_.channels + panel.begin;
      grid_.convolve(panel, source, a.input<float>(1), out, pixels * pb / pixel_blocks_, pixels * (pb + 1) / pixel_blocks_, scratch);
    }
  }

 private:
  ConvGrid grid_;
  Pixels<const float> source_;
  Pixels<float> out_;
  int64_t pixel_blocks_ = 1, panel_blocks_ = 1;
  int blocks_ = 1;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d(const ops::Conv2D& op, const Request& request) {
  if (!all_float(request.inputs) || !all_float(request.outputs) || !op.epilogue.empty()) return slow(op, request);
  return std::make_unique<Convolution>(op, request);
}

}  // namespace millpond::backend::cpu
