// ConvGrid: a convolution of any kind as sums over taps, cut into panels of output channels and runs of pixels.
//
//   out(n, i, j)[c] = sum over taps t, k < length of source(n, i * step_h + t.row, j * step_w + t.col)[k] *
//   filter(t)[k][c]
//
// A tap outside the source adds nothing. Forward convolution is one grid; the gradient of the input is one grid for
// each residue of the strides, and reads dy with step 1. Neighbouring taps of a row are read as one run; columns at the
// border, where a run is shorter, are done one by one, and runs above and below the image are left out.
// The gradient of the filter reads the same runs from rows that were copied with their borders. Its vectors hold either
// the channels of dy or the floats of a run, whatever leaves fewer lanes empty; in the second case ("turned") its sums
// come out transposed.
// Memory: each thread has scratch for a packed part of the filter (at most 1,024 rows of a panel), for pointers, zeros,
// copied rows and transposed sums.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cpu/conv_tile.h"
#include "ops/conv2d.h"

namespace millpond::backend::cpu {

struct Tap {
  int64_t row = 0, col = 0;  // The source pixel that is read, counted from (i * step_h, j * step_w).
  int64_t filter = 0;        // The filter of this tap begins so many floats into the whole.
};

/// Where pixel (n, i, j) lies: data + n * image + i * row + j * pixel.
template <class T>
struct Pixels {
  T* data = nullptr;
  int64_t image = 0, row = 0, pixel = 0;
  T* at(int64_t n, int64_t i, int64_t j) const { return data + n * image + i * row + j * pixel; }
};

/// The pixels of a grid that lie row after row without gaps. Pixel number `from` lies at `data`.
template <class T>
Pixels<T> linear(T* data, int64_t from, int64_t height, int64_t width, int64_t pixel) {
  return {data - from * pixel, height * width * pixel, width * pixel, pixel};
}

/// Output channels that are computed together.
struct Panel {
  int64_t group = 0;
  int64_t begin = 0, channels = 0;  // within the group
  int vectors = 0, tail = 0;
};

/// A number of blocks near the one given that two or four threads share evenly.
int64_t even_blocks(int64_t blocks);

/// Panels that are equally wide where that is possible. Each begins at a multiple of 16 channels.
std::vector<Panel> cut_panels(int64_t groups, int64_t channels);

class ConvGrid {
 public:
  // The source.
  int64_t images = 0, height = 0, width = 0;
  // The output.
  int64_t out_height = 0, out_width = 0, step_h = 1, step_w = 1;
  std::vector<Tap> taps;
  int64_t length = 0;  // A tap reads so many floats.
  // The filter. Element (k, c) of a tap lies at k * filter_k + c * filter_c; one of the two is 1.
  int64_t filter_k = 0, filter_c = 0;
  int64_t channels = 0;                                    // The output of a group has so many.
  int64_t groups = 1, source_group = 0, filter_group = 0;  // Floats from one group to the next.
  // A depthwise convolution: channel c of the output depends on channel c of the source alone, the filter of a tap has
  // the shape [length], and one panel holds all channels.
  bool each = false;
  int64_t pixel = 0;  // Floats from one pixel of the source to the next.

  /// The grid of conv2d. `out_height` and `out_width` may be less than the whole output (conv_pool).
  static ConvGrid forward(const ops::Window& w, const Shape& x, const Shape& filter, int64_t groups, int64_t out_height,
                          int64_t out_width);
  /// The grid of the pixels of dx with row % stride_h == i, column % stride_w == j.
  static ConvGrid backward(const ops::Window& w, const Shape& x, const Shape& filter, int64_t groups,
                           int64_t out_height, int64_t out_width, int64_t i, int64_t j);
  /// Call when the fields are set.
  void finish();

  const std::vector<Panel>& panels() const { return panels_; }
  int64_t pixels() const { return images * out_height * out_width; }
  Bytes scratch() const { return Bytes{scratch_}; }  // One thread needs so much.
  /// The number of rows of the filter, taps * length, which is the depth of the product.
  int64_t depth() const { return int64_t(taps.size()) * (each ? 1 : length); }
  /// So many floats hold a pixel of any panel.
  int64_t panel_floats() const;

  /// Computes one panel of the pixels [from, to).
  void convolve(const Panel& panel, Pixels<const float> source, const float* filter, Pixels<float> out, int64_t from,
                int64_t to, std::byte* scratch) const;

  Bytes filter_scratch() const { return Bytes{filter_scratch_}; }
  /// Computes the gradient of the filter, dfilter, for the panels [first, last), summed over the pixels [from, to): the
  /// `part`-th of `parts` shares of each panel's pieces. With `add` the sums are added to what is there. `dy` begins at
  /// pixel `from`; `dfilter` is laid out as a whole filter is (filter_k, filter_c == 1).
  void filter_gradient(int64_t first, int64_t last, int64_t part, int64_t parts, Pixels<const float> source,
                       const float* dy, int64_t dy_stride, float* dfilter, bool add, int64_t from, int64_t to,
                       std::byte* scratch) const;

 private:
  void make_each(int64_t count);
  /// Neighbouring taps of one row that are read as one: `count` columns from `col` on.
  struct Run {
    int64_t row, col, count;
    int64_t at;  // Its filter begins at this row of a packed chunk.
  };
  struct Chunk {
    int64_t tap = 0, taps = 0, begin = 0, length = 0;
    int64_t run = 0, runs = 0;
  };
  struct Bounds {  // Source pixels exist from top and left on, up to bottom and right.
    int64_t top, bottom, left, right;
  };
  struct Cursor {
    int64_t n, i, j;
  };
  /// What convolve() keeps in scratch. The arrays have an element for each run.
  struct Work {
    const float* zeros;
    const float** pointers;  // [runs][pixels]
    const float **filters, **kept;
    int64_t *rows, *offsets;
  };
  Cursor cursor(int64_t pixel) const;
  int64_t neighbours(int64_t tap, int64_t count) const;
  void make_lines();
  void make_runs(Chunk& chunk);
  Pixels<const float> copy_rows(Pixels<const float> source, int64_t n, int64_t i, int64_t rows, float* to) const;
  void gradient_each(Pixels<const float> source, const Bounds& bounds, const float* dy, float* dfilter, bool add,
                     int64_t from, int64_t to, const float** pointers, const float* zeros) const;
  void tiles(const Panel& panel, const Chunk& chunk, Pixels<const float> source, const float* packed, Pixels<float> out,
             int64_t from, int64_t to, const Work& work) const;
  void columns(const Panel& panel, const Chunk& chunk, Pixels<const float> source, const float* packed,
               Pixels<float> out, int64_t from, int64_t to, int64_t first, int64_t last, const Work& work) const;
  void locate(const Tap& t, Pixels<const float> source, const Bounds& bounds, int64_t from, int64_t to,
              const float** pointers, const float* zeros) const;

  std::vector<Panel> panels_;
  std::vector<Chunk> chunks_;
  std::vector<Run> runs_;
  int64_t min_row_ = 0, max_row_ = 0;
  int64_t most_runs_ = 1;  // No chunk has more.
  // What follows is for the gradient of the filter.
  std::vector<Tap> lines_;  // A line is a run of neighbouring taps.
  int64_t line_length_ = 0;
  bool turned_ = false;              // Vectors hold the floats of a line, and sums come out transposed.
  std::vector<Panel> line_panels_;   // The panels of a line, when turned.
  std::vector<FilterPiece> pieces_;  // `tap` is a line; when turned, `rows` is one of line_panels_.
  bool copies_ = false;  // The source is read from rows that were copied with `left_` and `right_` columns of zeros.
  int64_t left_ = 0, right_ = 0;
  int64_t gradient_pixels_ = 0;  // So many pixels of dy and source stay in the cache while all pieces pass.
  int64_t segment_ = 0;          // The source rows of so many output rows are copied together.
  int64_t pointers_at_ = 0, copy_at_ = 0, packed_at_ = 0, scratch_ = 0, packed_dy_at_ = 0, sums_at_ = 0,
          filter_scratch_ = 0;
};

/// How a convolution is cut into blocks of pixels and panels. However it is cut, every element is summed the same way.
struct ConvCut {
  ConvCut() = default;
  explicit ConvCut(const ConvGrid& grid);
  int64_t pixel_blocks = 1, panel_blocks = 1;
  int64_t blocks() const { return pixel_blocks * panel_blocks; }
};

/// How the gradient of a filter is cut into blocks. A small filter is cut by pixels: a block reads its part of the
/// source once, and partial sums are added in order by a later phase. A large one is cut into blocks of its own
/// elements, each summed over all pixels.
struct FilterCut {
  FilterCut() = default;
  /// The pixels can be cut into at most `runs` parts.
  FilterCut(const ConvGrid& grid, int64_t runs);
  int64_t splits = 1, panel_blocks = 1, row_blocks = 1;
  int64_t blocks() const { return splits * panel_blocks * row_blocks; }
  // Blocks with neighbouring numbers run at the same time, so they are given the same part of the source.
  int64_t panel_block(int64_t block) const { return block % panel_blocks; }
  int64_t row_block(int64_t block) const { return block / panel_blocks % row_blocks; }
  int64_t split(int64_t block) const { return block / panel_blocks / row_blocks; }
};

}  // namespace millpond::backend::cpu
