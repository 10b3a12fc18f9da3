#include "ops/conv2d.h"

#include <algorithm>

#include "backend/cpu/blocks.h"
#include "backend/cpu/conv_grid.h"
#include "backend/cpu/expression.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/winograd_conv.h"

namespace millpond::backend::cpu {
namespace {

class Convolution final : public Kernel {
 public:
  Convolution(ConvGrid grid, const Shape& x, int64_t channels, std::unique_ptr<ExpressionKernel> epilogue, int threads)
      : grid_(std::move(grid)),
        source_{nullptr, x[1] * x[2] * x[3], x[2] * x[3], x[3]},
        cut_(grid_),
        channels_(channels),
        epilogue_(std::move(epilogue)),
        threads_(threads) {
    phases_[0] = int(cut_.blocks());
    own_ = aligned(grid_.scratch().value);
    if (!epilogue_) return;
    phases_[1] = epilogue_->unfinished() ? 1 : 0;
    epilogue_own_ = own_, own_ += aligned(epilogue_->own_bytes());
    if (epilogue_->product_output() < 0) {  // the product has no place of its own
      tile_ = own_;
      own_ += aligned(ceil_div(grid_.pixels(), cut_.pixel_blocks) * tile_pixel() * 4);
    }
  }
  std::span<const int> phases() const override { return {phases_, size_t(phases_[1] ? 2 : 1)}; }
  Bytes workspace() const override {
    return Bytes{own_ * threads_ + (epilogue_ ? aligned(epilogue_->shared_bytes()) : 0)};
  }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    std::byte* own = a.scratch + own_ * member;
    // Register r of an epilogue is operand r + 1: register 0 is the product.
    ExpressionCall call{a.in + 1, a.out, own + epilogue_own_, a.scratch + own_ * threads_, nullptr, 0};
    if (phase == 1) return epilogue_->finish(call);
    const int64_t pb = block / cut_.panel_blocks, cb = block % cut_.panel_blocks,
                  panels = int64_t(grid_.panels().size());
    const int64_t from = grid_.pixels() * pb / cut_.pixel_blocks, to = grid_.pixels() * (pb + 1) / cut_.pixel_blocks;
    Pixels<const float> source = source_;
    source.data = a.input<float>(0);
    for (int64_t k = panels * cb / cut_.panel_blocks; k < panels * (cb + 1) / cut_.panel_blocks; ++k) {
      const Panel& panel = grid_.panels()[size_t(k)];
      const int64_t begin = panel.group * grid_.channels + panel.begin;
      const int output = epilogue_ ? epilogue_->product_output() : 0;
      float* to_product =
          output < 0 ? reinterpret_cast<float*>(own + tile_) : a.output<float>(output) + from * channels_ + begin;
      const int64_t pixel = output < 0 ? tile_pixel() : channels_;
      grid_.convolve(panel, source, a.input<float>(1),
                     linear(to_product, from, grid_.out_height, grid_.out_width, pixel), from, to, own);
      if (!epilogue_) continue;
      call.product = to_product, call.product_ld = pixel;
      epilogue_->tile(call, {from, to - from, begin, panel.channels, int(pb), int(k), true, true});
    }
  }

 private:
  int64_t tile_pixel() const { return channels_ == 1 ? 1 : grid_.panel_floats(); }

  ConvGrid grid_;
  Pixels<const float> source_;
  ConvCut cut_;
  int64_t channels_;
  std::unique_ptr<ExpressionKernel> epilogue_;
  int phases_[2] = {1, 0};
  int64_t own_ = 0, epilogue_own_ = 0, tile_ = 0;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d(const ops::Conv2D& op, const Request& request) {
  if (!all_float(std::span(request.inputs).first(2))) return slow(op, request);
  const Shape& x = request.inputs[0].shape;
  const Shape y = op.product(request.inputs[0], request.inputs[1]).shape;
  const WinogradGeometry g{x[0], x[1], x[2], x[3], y[1], y[2], y[3], op.window.top, op.window.left};
  const bool winograd = winograd_pays(op.window, op.groups, g);
  ConvGrid grid;
  if (!winograd) grid = ConvGrid::forward(op.window, x, request.inputs[1].shape, op.groups, y[1], y[2]);
  std::unique_ptr<ExpressionKernel> epilogue;
  if (!op.epilogue.empty()) {
    std::vector<TensorType> operands{{DType::kFloat32, y}};
    operands.insert(operands.end(), request.inputs.begin() + 2, request.inputs.end());
    const Grid blocks = winograd
                            ? Grid{y[0] * y[1] * y[2], y[3], winograd_blocks(g), winograd_panels(g)}
                            : Grid{grid.pixels(), y[3], int(ConvCut(grid).pixel_blocks), int(grid.panels().size())};
    epilogue = ExpressionKernel::make(op.epilogue, operands, request.outputs, blocks, true);
    if (!epilogue) return slow(op, request);
  }
  if (winograd) return winograd_convolution(g, false, std::move(epilogue), {}, request.threads);
  return std::make_unique<Convolution>(std::move(grid), x, y[3], std::move(epilogue), request.threads);
}

}  // namespace millpond::backend::cpu
