#include "backend/cpu/winograd_conv.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/blocks.h"
#include "backend/cpu/conv_grid.h"
#include "backend/cpu/conv_pool_tile.h"
#include "backend/cpu/winograd_tile.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kTiles = 56;               // of a block, about: its input and products stay in L2
constexpr int64_t kInputFloats = 128 << 10;  // of transformed input in a block
constexpr Bytes kFilter = 4_MiB;             // of transformed filter: a larger one is used part by part
constexpr int64_t kTileParts = 4;            // at most: the input is transformed again for each
constexpr Bytes kGradient = 8_MiB;           // of the filter's gradient, transformed
constexpr int64_t kGradientTiles = 112;      // of a chunk of the filter's gradient
constexpr int64_t kGradientBlocks = 16;      // whatever the threads: the same bits with any number of them

int64_t tiles_of(const WinogradGeometry& g) { return g.images * g.tile_rows() * g.tile_cols(); }

int64_t rows_of(const WinogradGeometry& g) { return g.images * g.tile_rows(); }

int64_t units_of(const WinogradGeometry& g) { return g.images * ceil_div(g.tile_rows(), g.unit); }

int64_t blocks_of(const WinogradGeometry& g) {
  const int64_t tiles = std::clamp(kInputFloats / (16 * g.depth), kTiles / 2, kTiles);
  const int64_t rows = std::max<int64_t>(1, tiles / std::max<int64_t>(1, g.tile_cols()));
  return std::min(even_blocks(ceil_div(rows_of(g), rows)), std::max<int64_t>(1, units_of(g)));
}

/// The first row of tiles of a block.
int64_t first_row(const WinogradGeometry& g, int64_t block) {
  const int64_t unit = units_of(g) * block / blocks_of(g), units = ceil_div(g.tile_rows(), g.unit);
  return unit / units * g.tile_rows() + unit % units * g.unit;
}

/// Rows of tiles in a block, at most.
int64_t block_rows(const WinogradGeometry& g) { return ceil_div(units_of(g), blocks_of(g)) * g.unit; }

/// The four source rows of row r of tiles; null outside.
struct SourceRows {
  const float* rows[4] = {};
};
SourceRows source_rows(const WinogradGeometry& g, const float* source, int64_t r) {
  SourceRows s;
  const int64_t n = r / g.tile_rows(), y = 2 * (r % g.tile_rows()) - g.top;
  for (int64_t a = 0; a < 4; ++a)
    if (y + a >= 0 && y + a < g.height) s.rows[a] = source + (n * g.height + y + a) * g.width * g.depth;
  return s;
}

/// The 16 source pixels of tile j of a row; `zeros` outside.
void tile_source(const WinogradGeometry& g, const SourceRows& s, const float* zeros, int64_t j, const float** pixels) {
  const int64_t x = 2 * j - g.left;
  for (int64_t a = 0; a < 4; ++a)
    for (int64_t b = 0; b < 4; ++b)
      pixels[4 * a + b] = s.rows[a] && x + b >= 0 && x + b < g.width ? s.rows[a] + (x + b) * g.depth : zeros;
}

class WinogradConvolution final : public Kernel {
 public:
  WinogradConvolution(const WinogradGeometry& g, bool transposed, std::unique_ptr<ExpressionKernel> epilogue,
                      std::optional<PoolRows> pool, int threads)
      : g_(g),
        transposed_(transposed),
        panels_(cut_panels(1, g.channels)),
        epilogue_(std::move(epilogue)),
        pool_(pool),
        threads_(threads) {
    rows_ = block_rows(g);
    tiles_ = rows_ * g.tile_cols();
    const int64_t wide = int64_t(conv_tiles().vectors) * conv_tiles().lanes;
    // Panels in parts whose transformed filter fits: transform, use, transform, use, ...
    const int64_t one = aligned(16 * g.depth * wide * 4), panels = int64_t(panels_.size());
    part_panels_ = std::clamp<int64_t>(kFilter.value / one, 1, panels);
    filter_bytes_ = one * part_panels_;
    for (int64_t k = 0; k < panels; k += part_panels_) {
      phases_.push_back(int(std::min(part_panels_, panels - k) * ceil_div(g.depth, kFilterRows)));
      phases_.push_back(winograd_blocks(g));
    }
    if (epilogue_ && epilogue_->unfinished()) phases_.push_back(1);
    zeros_at_ = 0;
    input_at_ = aligned(g.depth * 4);
    product_at_ = input_at_ + aligned(16 * tiles_ * g.depth * 4);
    tile_at_ =
        product_at_ + std::max(aligned(16 * tiles_ * wide * 4), transposed ? aligned(9 * kFilterRows * wide * 4) : 0);
    epilogue_at_ = tile_at_;
    if (pool_ && transposed)
      epilogue_at_ += aligned(4 * g.width * g.depth * 4);
    else if (output() < 0)
      epilogue_at_ += aligned(2 * rows_ * g.out_width * wide * 4);
    own_ = epilogue_at_ + (epilogue_ ? aligned(epilogue_->own_bytes()) : 0);
  }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override {
    return Bytes{filter_bytes_ + own_ * threads_ + (epilogue_ ? aligned(epilogue_->shared_bytes()) : 0)};
  }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    std::byte* own = a.scratch + filter_bytes_ + own_ * member;
    ExpressionCall call{a.in + 1, a.out, own + epilogue_at_, a.scratch + filter_bytes_ + own_ * threads_, nullptr, 0};
    const int64_t first_panel = phase / 2 * part_panels_,
                  last_panel = std::min(first_panel + part_panels_, int64_t(panels_.size()));
    if (first_panel >= last_panel) return epilogue_->finish(call);
    if (phase % 2 == 0) return transform_filter(a, first_panel, block, own);
    const int64_t cols = g_.tile_cols(), first = first_row(g_, block), last = first_row(g_, block + 1);
    float* zeros = reinterpret_cast<float*>(own + zeros_at_);
    float* v = reinterpret_cast<float*>(own + input_at_);
    std::memset(zeros, 0, size_t(g_.depth) * 4);
    const int64_t plane = tiles_ * g_.depth, tiles = (last - first) * cols;
    for (int64_t r = first, t = 0; r < last; ++r) {
      const SourceRows source =
          pool_ && transposed_ ? spread_rows(a, r, r == first, own) : source_rows(g_, a.input<float>(0), r);
      for (int64_t j = 0; j < cols; ++j, ++t) {
        const float* pixels[16];
        tile_source(g_, source, zeros, j, pixels);
        winograd_tiles().input(pixels, g_.depth, v + t * g_.depth, plane);
      }
    }
    for (int64_t k = first_panel; k < last_panel; ++k) {
      const Panel& panel = panels_[size_t(k)];
      products(filter_of(a, k - first_panel), panel, v, plane, tiles, reinterpret_cast<float*>(own + product_at_));
      outputs(a, call, panel, int(k), block, first, last, own);
    }
  }

 private:
  static constexpr int64_t kFilterRows = 32;

  /// Which output is the convolution's; -1: it lives in a tile until the epilogue or the pool has seen it.
  int output() const { return epilogue_ ? epilogue_->product_output() : pool_ && !transposed_ ? -1 : 0; }

  /// The same as source_rows, from the gradient of pooled values. Four rows are kept, so that the next row of tiles
  /// finds two of its own.
  SourceRows spread_rows(const Arguments& a, int64_t r, bool first, std::byte* own) const {
    const int64_t n = r / g_.tile_rows(), i = r % g_.tile_rows(), y = 2 * i - g_.top, line = g_.width * g_.depth;
    SourceRows s;
    for (int64_t k = 0; k < 4; ++k) {
      if (y + k < 0 || y + k >= g_.height) continue;
      float* row = reinterpret_cast<float*>(own + tile_at_) + ((y + k) & 3) * line;
      if (first || i == 0 || k >= 2)
        pool_->spread(row, g_.depth, n * g_.height + y + k, 0, pool_->cols, 0, g_.depth, a.input<float>(0),
                      a.input<uint8_t>(2));
      s.rows[k] = row;
    }
    return s;
  }

  /// Panel k of the present part.
  float* filter_of(const Arguments& a, int64_t k) const {
    return reinterpret_cast<float*>(a.scratch + filter_bytes_ / part_panels_ * k);
  }

  void transform_filter(const Arguments& a, int64_t first_panel, int block, std::byte* own) const {
    const ConvTiles& isa = conv_tiles();
    const int64_t parts = ceil_div(g_.depth, kFilterRows), part = block % parts, k = block / parts;
    const Panel& panel = panels_[size_t(first_panel + k)];
    const int64_t begin = part * kFilterRows, rows = std::min(kFilterRows, g_.depth - begin),
                  wide = int64_t(panel.vectors) * isa.lanes;
    float* u = filter_of(a, k) + begin * wide;
    const float* f = a.input<float>(1);
    const float* taps[9];
    if (!transposed_) {
      for (int64_t t = 0; t < 9; ++t) taps[t] = f + (t * g_.depth + begin) * g_.channels + panel.begin;
      return winograd_tiles().filter(taps, rows, g_.channels, panel.vectors, panel.channels, u, g_.depth * wide);
    }
    // Filter [tap][channels][depth], turned by half a circle and transposed.
    float* turned = reinterpret_cast<float*>(own + product_at_);
    for (int64_t t = 0; t < 9; ++t) {
      float* to = turned + t * kFilterRows * wide;
      isa.pack_transposed(to, f + ((8 - t) * g_.channels + panel.begin) * g_.depth + begin, rows, g_.depth,
                          panel.vectors, panel.channels);
      taps[t] = to;
    }
    winograd_tiles().filter(taps, rows, wide, panel.vectors, panel.channels, u, g_.depth * wide);
  }

  void products(const float* u, const Panel& panel, const float* v, int64_t plane, int64_t tiles, float* m) const {
    const ConvTiles& isa = conv_tiles();
    const int64_t wide = int64_t(panel.vectors) * isa.lanes, most = isa.max_pixels[panel.vectors];
    const float* rows[ConvTiles::kPixels];
    float* outs[ConvTiles::kPixels];
    for (int64_t place = 0; place < 16; ++place, u += g_.depth * wide, v += plane, m += tiles_ * wide)
      for (int64_t t = 0; t < tiles;) {
        const int64_t rest = tiles - t, n = rest <= most ? rest : rest < 2 * most ? (rest + 1) / 2 : most;
        for (int64_t k = 0; k < n; ++k) rows[k] = v + (t + k) * g_.depth, outs[k] = m + (t + k) * wide;
        isa.pixels[panel.vectors][n]({rows, 1, g_.depth, &u, outs, n * g_.depth, panel.tail, false});
        t += n;
      }
  }

  void outputs(const Arguments& a, ExpressionCall& call, const Panel& panel, int panel_number, int block, int64_t first,
               int64_t last, std::byte* own) const {
    const int64_t cols = g_.tile_cols(), wide = int64_t(panel.vectors) * conv_tiles().lanes;
    const float* m = reinterpret_cast<const float*>(own + product_at_);
    const int output = this->output();
    // Rows of tiles are rows of pixels one after the other, over images too.
    auto pixel_row = [&](int64_t r) {
      return r / g_.tile_rows() * g_.out_height + std::min(2 * (r % g_.tile_rows()), g_.out_height);
    };
    const int64_t from = pixel_row(first) * g_.out_width,
                  to = (last == rows_of(g_) ? g_.images * g_.out_height : pixel_row(last)) * g_.out_width;
    float* product = output < 0 ? reinterpret_cast<float*>(own + tile_at_)
                                : a.output<float>(output) + from * g_.channels + panel.begin;
    const int64_t pixel = output >= 0 ? g_.channels : pool_ ? ceil_div(wide, 16) * 16 : wide;
    for (int64_t r = first, t = 0; r < last; ++r) {
      const int64_t i = r % g_.tile_rows() * 2;
      float* row = product + (pixel_row(r) * g_.out_width - from) * pixel;
      for (int64_t j = 0; j < cols; ++j, ++t) {
        float* at = row + 2 * j * pixel;
        const bool right = 2 * j + 1 < g_.out_width, below = i + 1 < g_.out_height;
        float* const pixels[4] = {at, right ? at + pixel : nullptr, below ? at + g_.out_width * pixel : nullptr,
                                  right && below ? at + (g_.out_width + 1) * pixel : nullptr};
        winograd_tiles().output(m + t * wide, tiles_ * wide, panel.channels, pixels);
      }
    }
    if (pool_ && !transposed_)
      pool_->pool(product, pixel, from / g_.out_width / pool_->pool_h, to / g_.out_width / pool_->pool_h, panel.begin,
                  panel.channels, a.input<float>(2), a.output<float>(0), a.output<uint8_t>(1));
    if (!epilogue_) return;
    call.product = product, call.product_ld = pixel;
    epilogue_->tile(call, {from, to - from, panel.begin, panel.channels, block, panel_number, true, true});
  }

  WinogradGeometry g_;
  bool transposed_;
  std::vector<Panel> panels_;
  std::unique_ptr<ExpressionKernel> epilogue_;
  std::optional<PoolRows> pool_;
  std::vector<int> phases_;
  int64_t part_panels_ = 1, rows_ = 1, tiles_ = 1, filter_bytes_ = 0, zeros_at_ = 0, input_at_ = 0, product_at_ = 0,
          tile_at_ = 0, epilogue_at_ = 0, own_ = 0;
  int threads_;
};

/// A block has some panels, one of the four rows of places, and a part of the tiles.
class WinogradFilterGradient final : public Kernel {
 public:
  WinogradFilterGradient(const WinogradGeometry& g, std::optional<PoolRows> pool, int threads)
      : g_(g), panels_(cut_panels(1, g.channels)), pool_(pool), threads_(threads) {
    const ConvTiles& isa = conv_tiles();
    const int64_t panels = int64_t(panels_.size()), lanes = isa.lanes;
    width_ = (panels_.back().begin + int64_t(panels_.back().vectors) * lanes);
    panel_blocks_ = std::min<int64_t>(panels, kGradientBlocks / 4);
    splits_ =
        std::clamp<int64_t>(kGradientBlocks / 4 / panel_blocks_, 1, std::max<int64_t>(1, tiles_of(g) / kGradientTiles));
    phases_[0] = int(4 * panel_blocks_ * splits_);
    sum_ = Runs(g.depth, double(g.channels * 16 * splits_) * 0.2);
    phases_[1] = sum_.blocks + (pool_ ? 1 : 0);
    partial_ = 16 * g.depth * width_ + (pool_ ? width_ : 0);
    const int64_t parts = ceil_div(g.depth, isa.max_rows[isa.vectors]);
    for (int64_t p = 0; p < parts; ++p)
      pieces_.push_back({0, int32_t(g.depth * (p + 1) / parts - g.depth * p / parts), g.depth * p / parts});
    input_at_ = aligned(std::max(g.depth, g.channels) * 4);
    gradient_at_ = input_at_ + aligned(4 * kGradientTiles * g.depth * 4);
    pointers_at_ = gradient_at_ + aligned(4 * kGradientTiles * isa.vectors * lanes * 4);
    rows_at_ = pointers_at_ + aligned((kGradientTiles + ConvTiles::kAhead) * int64_t(sizeof(float*)));
    own_ = rows_at_ + (pool_ ? 2 * row_pixels() * isa.vectors * lanes * 4 : 0);
  }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override { return Bytes{aligned(partial_ * splits_ * 4) + own_ * threads_}; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    float* partials = reinterpret_cast<float*>(a.scratch);
    if (phase == 1) {
      if (block == sum_.blocks)
        return conv_tiles().add_up(a.output<float>(1), partials + bias_at(), g_.channels, partial_, splits_);
      for (int64_t k = sum_.begin(block); k < sum_.end(block); ++k) {
        float* taps[9];
        for (int64_t t = 0; t < 9; ++t) taps[t] = a.output<float>(0) + (t * g_.depth + k) * g_.channels;
        winograd_tiles().filter_gradient(partials + k * width_, g_.depth * width_, partial_, splits_, g_.channels,
                                         taps);
      }
      return;
    }
    const int i = block % 4;
    const int64_t part = block / 4 % panel_blocks_, split = block / 4 / panel_blocks_, panels = int64_t(panels_.size()),
                  all = tiles_of(g_);
    const int64_t from = all * split / splits_, to = all * (split + 1) / splits_;
    std::byte* own = a.scratch + aligned(partial_ * splits_ * 4) + own_ * member;
    std::memset(own, 0, size_t(input_at_));
    const int64_t first = panels * part / panel_blocks_, last = panels * (part + 1) / panel_blocks_;
    float* sums = partials + split * partial_;
    if (pool_ && i == 0) {
      const int64_t begin = panels_[size_t(first)].begin,
                    end = panels_[size_t(last - 1)].begin + panels_[size_t(last - 1)].channels;
      const int64_t cells = g_.images * pool_->rows * pool_->cols, cell = cells * split / splits_;
      std::memset(sums + bias_at() + begin, 0, size_t(end - begin) * 4);
      pool_tile_table().add_rows(sums + bias_at() + begin, a.input<float>(2) + cell * g_.channels + begin, g_.channels,
                                 cells * (split + 1) / splits_ - cell, end - begin);
    }
    for (int64_t t = from; t < to; t += kGradientTiles)
      chunk(a, i, first, last, t, std::min(t + kGradientTiles, to), sums, t > from, own);
  }

 private:
  int64_t bias_at() const { return 16 * g_.depth * width_; }
  /// Pixels of a row that the tiles of a chunk touch, to whole cells.
  int64_t row_pixels() const { return std::min(g_.out_width, 2 * (kGradientTiles + pool_->pool_w)); }

  /// The rows of dy under the tiles [j, j + count) of row r of tiles that row i of places needs: where their pixel 0
  /// lies or would lie. Null: zeros.
  void gradient_rows(const Arguments& a, int i, const Panel& panel, int64_t r, int64_t j, int64_t count, std::byte* own,
                     const float** rows) const {
    const int64_t n = r / g_.tile_rows(), y = r % g_.tile_rows() * 2;
    for (int64_t d = 0; d < 2; ++d) {
      const int64_t row = n * g_.out_height + y + d;
      rows[d] = nullptr;
      if (y + d >= g_.out_height || i == (d ? 0 : 3)) continue;
      if (!pool_) {
        rows[d] = a.input<float>(1) + row * g_.out_width * g_.channels + panel.begin;
        continue;
      }
      const int64_t first = 2 * j / pool_->pool_w,
                    last = std::min(pool_->cols, ceil_div(2 * (j + count), pool_->pool_w));
      float* to = reinterpret_cast<float*>(own + rows_at_) + d * row_pixels() * pixel();
      pool_->spread(to, pixel(), row, first, last, panel.begin, panel.channels, a.input<float>(2), a.input<uint8_t>(1));
      rows[d] = to - first * pool_->pool_w * pixel();
    }
  }
  /// Floats between the pixels of such a row.
  int64_t pixel() const { return pool_ ? int64_t(conv_tiles().vectors) * conv_tiles().lanes : g_.channels; }

  void chunk(const Arguments& a, int i, int64_t first, int64_t last, int64_t from, int64_t to, float* sums, bool add,
             std::byte* own) const {
    const ConvTiles& isa = conv_tiles();
    const float* zeros = reinterpret_cast<const float*>(own);
    float* v = reinterpret_cast<float*>(own + input_at_);
    float* w = reinterpret_cast<float*>(own + gradient_at_);
    const float** pointers = reinterpret_cast<const float**>(own + pointers_at_);
    const int64_t cols = g_.tile_cols(), count = to - from, plane = kGradientTiles * g_.depth;
    for (int64_t t = from; t < to; ++t) {
      const float* pixels[16];
      tile_source(g_, source_rows(g_, a.input<float>(0), t / cols), zeros, t % cols, pixels);
      winograd_tiles().input_row(i, pixels, g_.depth, v + (t - from) * g_.depth, plane);
    }
    for (int64_t t = 0; t < count + ConvTiles::kAhead; ++t) pointers[t] = v + std::min(t, count - 1) * g_.depth;
    for (int64_t k = first; k < last; ++k) {
      const Panel& panel = panels_[size_t(k)];
      const int64_t wide = int64_t(panel.vectors) * isa.lanes;
      const float* rows[2];
      for (int64_t t = from; t < to; ++t) {
        const int64_t j = t % cols, x = 2 * j;
        if (t == from || j == 0) gradient_rows(a, i, panel, t / cols, j, std::min(to - t, cols - j), own, rows);
        const float* pixels[4];
        for (int64_t p = 0; p < 4; ++p)
          pixels[p] = rows[p / 2] && x + p % 2 < g_.out_width ? rows[p / 2] + (x + p % 2) * pixel() : zeros;
        winograd_tiles().gradient_row(i, pixels, panel.vectors, panel.channels, w + (t - from) * wide,
                                      kGradientTiles * wide);
      }
      for (int64_t j = 0; j < 4; ++j) {
        FilterTile tile{pointers, 0, w + j * kGradientTiles * wide, wide, count, nullptr, width_, panel.tail, add};
        float* out = sums + (4 * i + j) * g_.depth * width_ + panel.begin;
        for (const FilterPiece& piece : pieces_) {
          tile.offset = j * plane + piece.begin;
          tile.out = out + piece.begin * width_;
          isa.filter[panel.vectors][piece.rows](tile);
        }
      }
    }
  }

  WinogradGeometry g_;
  std::vector<Panel> panels_;
  std::vector<FilterPiece> pieces_;
  std::optional<PoolRows> pool_;
  Runs sum_;
  int64_t width_ = 0, panel_blocks_ = 1, splits_ = 1, partial_ = 0, input_at_ = 0, gradient_at_ = 0, pointers_at_ = 0,
          rows_at_ = 0, own_ = 0;
  int phases_[2] = {1, 1};
  int threads_;
};

}  // namespace

namespace {
bool fits(const ops::Window& w, int64_t groups, const WinogradGeometry& g) {
  if (w.height != 3 || w.width != 3 || w.stride_h != 1 || w.stride_w != 1 || w.dilation_h != 1 || w.dilation_w != 1 ||
      groups != 1)
    return false;
  if (g.depth < 16 || g.channels < 16 || tiles_of(g) < kTiles) return false;
  return block_rows(g) * g.tile_cols() * 16 * g.depth <= 3 * kInputFloats;
}

/// Cycles: a product takes one for each vector; transforms about 4 a float of input and 3.5 of output.
bool faster(const WinogradGeometry& g, double passes) {
  const double k = double(g.depth), c = double(ceil_div(g.channels, 16) * 16),
               pixels = double(g.images * g.out_height * g.out_width), tiles = double(tiles_of(g));
  return tiles * (k * c * 1.08 + 4 * k * passes + 3.5 * c) + 2.5 * k * c < 0.9 * pixels * 9 * k * c / 16;
}
}  // namespace

bool winograd_pays(const ops::Window& w, int64_t groups, const WinogradGeometry& g) {
  const int64_t parts = ceil_div(16 * g.depth * g.channels * 4, kFilter.value);
  return fits(w, groups, g) && parts <= kTileParts && faster(g, double(parts));
}

bool winograd_gradient_pays(const ops::Window& w, int64_t groups, const WinogradGeometry& g) {
  return fits(w, groups, g) && 16 * g.depth * g.channels * 4 <= kGradient.value && faster(g, 1);
}

int winograd_blocks(const WinogradGeometry& g) { return int(blocks_of(g)); }
int winograd_panels(const WinogradGeometry& g) { return int(cut_panels(1, g.channels).size()); }

std::unique_ptr<Kernel> winograd_convolution(const WinogradGeometry& g, bool transposed,
                                             std::unique_ptr<ExpressionKernel> epilogue, std::optional<PoolRows> pool,
                                             int threads) {
  return std::make_unique<WinogradConvolution>(g, transposed, std::move(epilogue), pool, threads);
}

std::unique_ptr<Kernel> winograd_filter_gradient(const WinogradGeometry& g, std::optional<PoolRows> pool, int threads) {
  return std::make_unique<WinogradFilterGradient>(g, pool, threads);
}

}  // namespace millpond::backend::cpu
