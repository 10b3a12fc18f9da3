#include "backend/cpu/conv_grid.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace millpond::backend::cpu {
namespace {

// A chunk of the filter has at most so many rows. Packed for a panel of 64 channels it takes 256 KiB, a quarter of L2.
constexpr int64_t kChunkRows = 1024;
// The gradient of a filter works on so many bytes of the source at a time, beside 64 KiB of dy.
constexpr int64_t kGradientBytes = 256 << 10;
// Rows of the source are copied, with their zeros, at most so many bytes at a time ...
constexpr int64_t kCopyBytes = 128 << 10;
// ... and only where a copy serves so many rows of output: for fewer, the rows around them are too much of the copy.
constexpr int64_t kCopyRows = 4;
// Where the pixels of dy lie more than so many floats apart, a panel of dy is packed before it is used.
constexpr int64_t kNearPixels = 128;
// Sums of a filter's gradient are kept transposed as long as they take no more bytes than this.
constexpr int64_t kTurnedBytes = 256 << 10;
// A block has about so many pixels: packing the filter's panel for it costs 12 cycles a row, using it 4 cycles a pixel.
constexpr int64_t kBlockPixels = 420;
// Work is cut further only while a block keeps so many multiply-adds.
constexpr double kBlockWork = 1 << 20;
// These cut the gradient of a filter. They do not ask for the number of threads, so any number gives the same bits.
constexpr int64_t kBlocks = 16, kSplits = 8;
constexpr int64_t kPartials = 4 << 20;  // The partial sums of all splits take at most so many bytes.
// A block has at least so many rows of the filter: packing dy for it costs 12 cycles a pixel, a row of the filter 4.
constexpr int64_t kRowsInBlock = 96;
constexpr int64_t kLine = 16;  // A cache line holds so many floats.

int64_t round_line(int64_t n) { return (n + kLine - 1) / kLine * kLine; }

bool depthwise(const Shape& x, const Shape& filter, int64_t groups) {
  return groups > 1 && groups == x[3] && groups == filter[3];
}

}  // namespace

int64_t even_blocks(int64_t blocks) { return blocks < 3 ? std::max<int64_t>(1, blocks) : (blocks + 3) / 4 * 4; }

std::vector<Panel> cut_panels(int64_t groups, int64_t channels) {
  const ConvTiles& isa = conv_tiles();
  std::vector<Panel> panels;
  const int64_t units = (channels + 15) / 16, most = int64_t(isa.vectors) * isa.lanes / 16,
                count = (units + most - 1) / most;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t p = 0; p < count; ++p) {
      const int64_t begin = units * p / count * 16, end = std::min(channels, units * (p + 1) / count * 16);
      const int64_t vectors = (end - begin + isa.lanes - 1) / isa.lanes;
      panels.push_back({g, begin, end - begin, int(vectors), int(end - begin - (vectors - 1) * isa.lanes)});
    }
  return panels;
}

void ConvGrid::make_each(int64_t count) {
  each = true;
  length = channels = count;
  groups = 1, source_group = filter_group = 0;
}

int64_t ConvGrid::panel_floats() const {
  return each ? round_line(channels) : int64_t(conv_tiles().vectors) * conv_tiles().lanes;
}

ConvGrid ConvGrid::forward(const ops::Window& w, const Shape& x, const Shape& filter, int64_t groups,
                           int64_t out_height, int64_t out_width) {
  ConvGrid g;
  const int64_t cin = filter[2], cout = filter[3];
  g.images = x[0], g.height = x[1], g.width = x[2], g.pixel = x[3];
  g.out_height = out_height, g.out_width = out_width;
  g.step_h = w.stride_h, g.step_w = w.stride_w;
  g.filter_k = cout, g.filter_c = 1;
  g.channels = cout / groups, g.groups = groups, g.source_group = cin, g.filter_group = cout / groups;
  if (depthwise(x, filter, groups)) g.make_each(x[3]);
  if (!g.each) g.length = cin;
  for (int64_t p = 0; p < filter[0]; ++p)
    for (int64_t q = 0; q < filter[1]; ++q)
      g.taps.push_back({p * w.dilation_h - w.top, q * w.dilation_w - w.left, (p * filter[1] + q) * cin * cout});
  g.finish();
  return g;
}

ConvGrid ConvGrid::backward(const ops::Window& w, const Shape& x, const Shape& filter, int64_t groups,
                            int64_t out_height, int64_t out_width, int64_t i, int64_t j) {
  ConvGrid g;
  const int64_t cin = filter[2], cout = filter[3];
  g.images = x[0], g.height = out_height, g.width = out_width, g.pixel = cout;
  g.out_height = (x[1] - i + w.stride_h - 1) / w.stride_h, g.out_width = (x[2] - j + w.stride_w - 1) / w.stride_w;
  g.filter_k = 1, g.filter_c = cout;
  g.length = cout / groups, g.channels = cin, g.groups = groups, g.source_group = cout / groups,
  g.filter_group = cout / groups;
  if (depthwise(x, filter, groups)) g.make_each(x[3]);
  for (int64_t p = 0; p < filter[0]; ++p)
    for (int64_t q = filter[1]; q-- > 0;) {  // Columns ascend in this order, so that neighbouring taps become one run.
      const int64_t row = i + w.top - p * w.dilation_h, col = j + w.left - q * w.dilation_w;
      if (row % w.stride_h == 0 && col % w.stride_w == 0)
        g.taps.push_back({row / w.stride_h, col / w.stride_w, (p * filter[1] + q) * cin * cout});
    }
  g.finish();
  return g;
}

void ConvGrid::finish() {
  const ConvTiles& isa = conv_tiles();
  panels_ = each ? std::vector<Panel>{{0, 0, channels, 0, 0}} : cut_panels(groups, channels);
  const int64_t count = int64_t(taps.size());
  if (count) {
    min_row_ = INT64_MAX, max_row_ = INT64_MIN;
    for (const Tap& t : taps) min_row_ = std::min(min_row_, t.row), max_row_ = std::max(max_row_, t.row);
  }
  // A chunk is the part of the filter that stays in the cache while all pixels pass: whole rows of taps, single taps,
  // or a part of a tap.
  if (each) {
    chunks_.push_back({0, count, 0, length});
  } else if (length > kChunkRows) {
    const int64_t parts = (length + kChunkRows - 1) / kChunkRows;
    for (int64_t t = 0; t < count; ++t)
      for (int64_t p = 0; p < parts; ++p)
        chunks_.push_back({t, 1, length * p / parts, length * (p + 1) / parts - length * p / parts});
  } else {
    int64_t together = 1;
    while (together < count && taps[size_t(together)].row == taps[0].row) ++together;
    if (count % together || together * length > kChunkRows) together = 1;
    const int64_t units = count / together,
                  most = std::max<int64_t>(1, kChunkRows / std::max<int64_t>(1, together * length)),
                  parts = (units + most - 1) / most;
    for (int64_t p = 0; p < parts; ++p)
      chunks_.push_back(
          {units * p / parts * together, (units * (p + 1) / parts - units * p / parts) * together, 0, length});
  }
  if (chunks_.empty()) chunks_.push_back({0, 0, 0, length});  // Without taps zeros are stored.
  int64_t rows = 0, longest = length;
  for (Chunk& c : chunks_) {
    make_runs(c);
    rows = std::max(rows, c.taps * c.length), most_runs_ = std::max(most_runs_, c.runs);
    if (c.runs) longest = std::max(longest, runs_[size_t(c.run)].count * c.length);
  }

  make_lines();
  const int64_t apart = pixel * std::min<int64_t>(step_h, max_row_ - min_row_ + 1) * step_w;
  // A depthwise gradient reads dy and all taps of a few pixels at a time.
  gradient_pixels_ = each ? 64 : std::clamp<int64_t>(kGradientBytes / 4 / std::max<int64_t>(1, apart) / 8 * 8, 64, 256);
  const int64_t panel = int64_t(isa.vectors) * isa.lanes;
  pointers_at_ = round_line(std::max(longest, line_length_)) * 4;  // The pointers lie behind the zeros.
  packed_at_ = pointers_at_ + round_line(2 * most_runs_ * (ConvTiles::kPixels + 4)) * 4;
  scratch_ = packed_at_ + round_line(each ? count * length : rows * panel) * 4;
  copy_at_ = pointers_at_ + round_line(2 * (each ? count : 2) * (gradient_pixels_ + ConvTiles::kAhead)) * 4;
  packed_dy_at_ =
      copy_at_ +
      (copies_ ? round_line(((segment_ - 1) * step_h + max_row_ - min_row_ + 1) * (left_ + width + right_) * pixel) * 4
               : 0);
  sums_at_ = packed_dy_at_ + (turned_ ? 0 : gradient_pixels_ * panel * 4);
  filter_scratch_ = sums_at_ + (turned_ ? int64_t(pieces_.size()) * channels * panel * 4 : 0);
}

/// If the `count` taps from `tap` on consist of equally long rows of neighbouring pixels, the length of such a row;
/// otherwise 1.
int64_t ConvGrid::neighbours(int64_t tap, int64_t count) const {
  if (each || length != pixel) return 1;
  const Tap* first = taps.data() + tap;
  int64_t n = 1;
  while (n < count && first[n].row == first[0].row) ++n;
  if (count % n) return 1;
  for (int64_t t = 0; t < count; ++t)
    if (first[t].row != first[t - t % n].row || first[t].col != first[0].col + t % n) return 1;
  return n;
}

void ConvGrid::make_lines() {
  const ConvTiles& isa = conv_tiles();
  const int64_t count = int64_t(taps.size());
  int64_t n = neighbours(0, count);
  segment_ = out_height;
  if (n > 1) {
    left_ = std::max<int64_t>(0, -taps[0].col);
    right_ = std::max<int64_t>(0, (out_width - 1) * step_w + taps[0].col + n - width);
    copies_ = left_ || right_ || min_row_ < 0 || (out_height - 1) * step_h + max_row_ >= height;
  }
  if (copies_) {
    const int64_t row = (left_ + width + right_) * pixel, span = max_row_ - min_row_ + 1;
    segment_ = std::min((kCopyBytes / 4 / row - span) / step_h + 1, out_height);
    if (segment_ < std::min(kCopyRows, out_height)) n = 1, copies_ = false;
  }
  line_length_ = n * length;
  for (int64_t t = 0; t < (each ? 0 : count); t += n) lines_.push_back(taps[size_t(t)]);
  auto lanes = [](int64_t floats) { return (floats + 7) / 8 * 8; };  // Half a vector is the smallest unit.
  line_panels_ = cut_panels(1, line_length_);
  turned_ = groups == 1 && !each &&
            1.06 * double(lanes(line_length_) * channels) < double(line_length_ * lanes(channels)) &&
            int64_t(lines_.size() * line_panels_.size()) * channels * isa.vectors * isa.lanes * 4 <= kTurnedBytes;
  int vectors = 1;
  for (const Panel& p : panels_) vectors = std::max(vectors, p.vectors);
  const int64_t most = isa.max_rows[vectors], parts = (line_length_ + most - 1) / most;
  for (int32_t t = 0; t < int32_t(lines_.size()); ++t) {
    if (turned_)
      for (size_t k = 0; k < line_panels_.size(); ++k) pieces_.push_back({t, int32_t(k), line_panels_[k].begin});
    else
      for (int64_t p = 0; p < parts; ++p) {
        const int64_t begin = line_length_ * p / parts;
        pieces_.push_back({t, int32_t(line_length_ * (p + 1) / parts - begin), begin});
      }
  }
}

void ConvGrid::make_runs(Chunk& chunk) {
  const int64_t n = chunk.length == length ? neighbours(chunk.tap, chunk.taps) : 1;
  chunk.run = int64_t(runs_.size()), chunk.runs = chunk.taps / n;
  for (int64_t t = 0; t < chunk.taps; t += n) {
    const Tap& tap = taps[size_t(chunk.tap + t)];
    runs_.push_back({tap.row, tap.col, n, t * chunk.length});
  }
}

ConvGrid::Cursor ConvGrid::cursor(int64_t p) const {
  const int64_t r = p / out_width;
  return {r / out_height, r % out_height, p % out_width};
}

/// Copies the source rows that `rows` rows of output read, with zeros around them. The result addresses the copy by the
/// coordinates of the whole source.
Pixels<const float> ConvGrid::copy_rows(Pixels<const float> source, int64_t n, int64_t i, int64_t rows,
                                        float* to) const {
  const int64_t first = i * step_h + min_row_, last = (i + rows - 1) * step_h + max_row_;
  const int64_t row = (left_ + width + right_) * pixel;
  const float* from = source.data + n * source.image;
  float* p = to;
  for (int64_t y = first; y <= last; ++y, p += row) {
    if (y < 0 || y >= height) {
      std::memset(p, 0, size_t(row) * 4);
      continue;
    }
    std::memset(p, 0, size_t(left_ * pixel) * 4);
    std::memcpy(p + left_ * pixel, from + y * source.row, size_t(width * pixel) * 4);
    std::memset(p + (left_ + width) * pixel, 0, size_t(right_ * pixel) * 4);
  }
  return {to + left_ * pixel - first * row, 0, row, pixel};
}

/// Computes those pixels of [from, to) that lie in the columns [first, last). In all of these columns the same taps lie
/// inside the source.
void ConvGrid::columns(const Panel& panel, const Chunk& chunk, Pixels<const float> source, const float* packed,
                       Pixels<float> out, int64_t from, int64_t to, int64_t first, int64_t last,
                       const Work& work) const {
  const int64_t across = last - first;
  auto before = [&](int64_t p) {
    return p / out_width * across + std::clamp<int64_t>(p % out_width - first, 0, across);
  };
  const int64_t begin = before(from), end = before(to);
  if (begin == end) return;
  const ConvTiles& isa = conv_tiles();
  const int64_t most = each ? ConvTiles::kPixels : isa.max_pixels[panel.vectors],
                width_of_panel = each ? 1 : int64_t(panel.vectors) * isa.lanes;
  const ConvTiles::Pixels* function = each ? isa.each : isa.pixels[panel.vectors];

  float* outs[ConvTiles::kPixels];
  const float* origins[ConvTiles::kPixels];
  int64_t ys[ConvTiles::kPixels];
  PixelTile tile{work.pointers, 0, chunk.length, work.kept, outs, 0, panel.tail, chunk.tap > 0 || chunk.begin > 0};
  int64_t runs = 0;
  for (int64_t r = 0; r < chunk.runs; ++r) {
    const Run& run = runs_[size_t(chunk.run + r)];
    const int64_t a = std::max(run.col, -first * step_w), b = std::min(run.col + run.count, width - first * step_w);
    if (a >= b) continue;
    tile.length = (b - a) * chunk.length;
    work.filters[runs] = packed + (run.at + (a - run.col) * chunk.length) * width_of_panel;
    work.rows[runs] = run.row;
    work.offsets[runs++] = run.row * source.row + a * source.pixel + chunk.begin;
  }
  Cursor c = {begin / across / out_height, begin / across % out_height, first + begin % across};
  int64_t y = 0;
  float* to_pixel = nullptr;
  const float* origin = nullptr;
  bool whole_row = false;  // All runs of this row lie inside the source: none is above or below it.
  auto place = [&] {
    y = c.i * step_h, to_pixel = out.at(c.n, c.i, c.j), origin = source.at(c.n, y, c.j * step_w);
    whole_row = y + min_row_ >= 0 && y + max_row_ < height;
  };
  place();
  for (int64_t p = begin; p < end;) {
    const int64_t rest = end - p, n = rest <= most ? rest : rest < 2 * most ? (rest + 1) / 2 : most;
    bool whole = true;
    for (int64_t k = 0; k < n; ++k) {
      outs[k] = to_pixel, origins[k] = origin, ys[k] = y;
      whole &= whole_row;
      to_pixel += out.pixel, origin += step_w * source.pixel;
      if (++c.j < last) continue;
      c.j = first;
      if (++c.i == out_height) c.i = 0, ++c.n;
      place();
    }
    const float** at = work.pointers;
    if (whole) {
      for (int64_t r = 0; r < runs; ++r, at += n)
        for (int64_t k = 0; k < n; ++k) at[k] = origins[k] + work.offsets[r];
      tile.runs = runs, tile.filters = work.filters;
    } else {
      tile.runs = 0, tile.filters = work.kept;
      for (int64_t r = 0; r < runs; ++r) {
        bool any = false;
        for (int64_t k = 0; k < n; ++k) {
          const bool inside = uint64_t(ys[k] + work.rows[r]) < uint64_t(height);
          at[k] = inside ? origins[k] + work.offsets[r] : work.zeros;
          any |= inside;
        }
        if (any) work.kept[tile.runs++] = work.filters[r], at += n;
      }
    }
    tile.ahead = step_w == 1 ? n * source.pixel : 0;
    function[n](tile);
    p += n;
  }
}

void ConvGrid::tiles(const Panel& panel, const Chunk& chunk, Pixels<const float> source, const float* packed,
                     Pixels<float> out, int64_t from, int64_t to, const Work& work) const {
  // In the columns [inner, outer) all taps lie inside the source.
  int64_t inner = 0, outer = out_width;
  for (int64_t r = chunk.run; r < chunk.run + chunk.runs; ++r) {
    const Run& run = runs_[size_t(r)];
    inner = std::max(inner, (std::max<int64_t>(0, -run.col) + step_w - 1) / step_w);
    const int64_t last = width - run.col - run.count;  // The last column of the source where the run fits.
    outer = std::min(outer, last < 0 ? 0 : last / step_w + 1);
  }
  inner = std::min(inner, out_width), outer = std::max(inner, outer);
  auto some = [&](int64_t first, int64_t last) {
    columns(panel, chunk, source, packed, out, from, to, first, last, work);
  };
  for (int64_t j = 0; j < inner; ++j) some(j, j + 1);
  if (inner < outer) some(inner, outer);
  for (int64_t j = outer; j < out_width; ++j) some(j, j + 1);
}

void ConvGrid::convolve(const Panel& panel, Pixels<const float> source, const float* filter, Pixels<float> out,
                        int64_t from, int64_t to, std::byte* scratch) const {
  const ConvTiles& isa = conv_tiles();
  std::memset(scratch, 0, size_t(pointers_at_));
  const float** arrays = reinterpret_cast<const float**>(scratch + pointers_at_) + most_runs_ * ConvTiles::kPixels;
  int64_t* numbers = reinterpret_cast<int64_t*>(arrays + 2 * most_runs_);
  const Work work{reinterpret_cast<const float*>(scratch),
                  arrays - most_runs_ * ConvTiles::kPixels,
                  arrays,
                  arrays + most_runs_,
                  numbers,
                  numbers + most_runs_};
  float* packed = reinterpret_cast<float*>(scratch + packed_at_);
  const int64_t width_of_panel = int64_t(panel.vectors) * isa.lanes;
  filter += panel.group * filter_group + panel.begin * filter_c;
  for (const Chunk& chunk : chunks_) {
    const float* use = packed;
    if (each) {
      for (int64_t t = 0; t < chunk.taps; ++t)
        std::memcpy(packed + t * length, filter + taps[size_t(t)].filter, size_t(length) * 4);
    } else if (filter_c == 1 && filter_k == width_of_panel && panel.channels == width_of_panel &&
               chunk.length == length) {
      // The filter lies as a packed panel would, tap after tap, and is read where it is.
      use = filter + (chunk.taps ? taps[chunk.tap].filter : 0);
    } else {
      for (int64_t t = 0; t < chunk.taps; ++t) {
        const float* f = filter + taps[chunk.tap + t].filter + chunk.begin * filter_k;
        float* at = packed + t * chunk.length * width_of_panel;
        if (filter_c == 1)
          isa.pack(at, f, chunk.length, filter_k, panel.vectors, panel.channels);
        else
          isa.pack_transposed(at, f, chunk.length, filter_c, panel.vectors, panel.channels);
      }
    }
    Pixels<const float> s = source;
    s.data += panel.group * source_group;
    tiles(panel, chunk, s, use, out, from, to, work);
  }
}

/// Writes into `pointers` where tap `t` reads the source for each of the pixels [from, to): `zeros` where it lies
/// outside.
void ConvGrid::locate(const Tap& t, Pixels<const float> source, const Bounds& b, int64_t from, int64_t to,
                      const float** pointers, const float* zeros) const {
  Cursor c = cursor(from);
  for (int64_t p = from; p < to;) {
    const int64_t n = std::min(to - p, out_width - c.j), row = c.i * step_h + t.row;
    const float** at = pointers + (p - from);
    if (row >= b.top && row < b.bottom) {
      const float* line = source.at(c.n, row, t.col);
      for (int64_t j = 0; j < n; ++j) {
        const int64_t x = (c.j + j) * step_w;
        at[j] = x + t.col >= b.left && x + t.col < b.right ? line + x * source.pixel : zeros;
      }
    } else {
      for (int64_t j = 0; j < n; ++j) at[j] = zeros;
    }
    p += n;
    c.j = 0;
    if (++c.i == out_height) c.i = 0, ++c.n;
  }
  for (int64_t p = 0; p < ConvTiles::kAhead; ++p) pointers[to - from + p] = pointers[0];
}

void ConvGrid::gradient_each(Pixels<const float> source, const Bounds& bounds, const float* dy, float* dfilter,
                             bool add, int64_t from, int64_t to, const float** pointers, const float* zeros) const {
  const int64_t stride = gradient_pixels_ + ConvTiles::kAhead, count = int64_t(taps.size());
  for (int64_t t = 0; t < count; ++t) locate(taps[size_t(t)], source, bounds, from, to, pointers + t * stride, zeros);
  conv_tiles().each_filter(pointers, stride, count, to - from, dy, channels, dfilter, add);
}

void ConvGrid::filter_gradient(int64_t first, int64_t last, int64_t part, int64_t parts, Pixels<const float> source,
                               const float* dy, int64_t dy_stride, float* dfilter, bool add, int64_t from, int64_t to,
                               std::byte* scratch) const {
  const ConvTiles& isa = conv_tiles();
  float* zeros = reinterpret_cast<float*>(scratch);
  const float** pointers = reinterpret_cast<const float**>(scratch + pointers_at_);
  float* copy = reinterpret_cast<float*>(scratch + copy_at_);
  float* packed = reinterpret_cast<float*>(scratch + packed_dy_at_);
  if (first == last) return;
  std::memset(zeros, 0, size_t(pointers_at_));
  Bounds bounds{0, height, 0, width - (line_length_ > pixel ? line_length_ / pixel - 1 : 0)};
  if (copies_) bounds = {INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX};
  Pixels<const float> rows = source;
  const int64_t count_of = int64_t(pieces_.size()), piece0 = count_of * part / parts,
                piece1 = count_of * (part + 1) / parts;
  auto column = [&](int64_t k) { return panels_[size_t(k)].group * channels + panels_[size_t(k)].begin; };
  const int64_t first_column = column(first),
                columns = column(last - 1) + panels_[size_t(last - 1)].channels - first_column;
  float* sums = reinterpret_cast<float*>(scratch + sums_at_);
  const int64_t wide = int64_t(isa.vectors) * isa.lanes;  // A row of transposed sums has so many floats.
  int64_t copied = from;                                  // The rows of all pixels before this one lie in `copy`.
  for (int64_t p = from; p < to;) {
    int64_t end = std::min(to, p + gradient_pixels_);
    if (copies_) {
      if (p == copied) {
        const Cursor c = cursor(p);
        const int64_t count = std::min(segment_, out_height - c.i);
        rows = copy_rows(source, c.n, c.i, count, copy);
        copied = p - c.j + count * out_width;
      }
      end = std::min(end, copied);
    }
    if (each) {
      gradient_each(source, bounds, dy + (p - from) * dy_stride, dfilter, add || p > from, p, end, pointers, zeros);
      p = end;
      continue;
    }
    // While these pixels are worked on, source and dy of the next ones are fetched into L2. A piece reads a few
    // channels of each pixel, and the processor's own prefetchers do not follow that pattern. Several taps read the
    // same source again and again, so there only dy is fetched.
    const float** next = pointers + gradient_pixels_ + ConvTiles::kAhead;
    const int64_t next_pixels = std::min(gradient_pixels_, to - end), next_sources = taps.size() == 1 ? next_pixels : 0;
    if (next_sources > 0) locate(taps[0], source, bounds, end, end + next_sources, next, zeros);
    const int64_t lines_of_source = (pixel + kLine - 1) / kLine, lines_of_dy = (columns + kLine - 1) / kLine;
    const int64_t share = (next_sources * lines_of_source + next_pixels * lines_of_dy) /
                              std::max<int64_t>(1, (piece1 - piece0) * (turned_ ? 1 : last - first)) +
                          1;
    int64_t at_line = 0, at_source = 0, at_dy = 0;
    auto fetch_ahead = [&](int64_t count) {
      for (; count > 0 && at_source < next_sources; --count) {
        __builtin_prefetch(next[at_source] + at_line * kLine, 0, 2);
        if (++at_line == lines_of_source) at_line = 0, ++at_source;
      }
      for (; count > 0 && at_dy < next_pixels; --count) {
        __builtin_prefetch(dy + (end - from + at_dy) * dy_stride + first_column + at_line * kLine, 0, 2);
        if (++at_line == lines_of_dy) at_line = 0, ++at_dy;
      }
    };
    // Leaves out the pixels for which this line of taps lies above or below the image.
    const int64_t at = p % (out_height * out_width);
    auto rows_inside = [&](const Tap& line, FilterTile& tile) {
      int64_t skip = 0, stop = end - p;
      if (at + stop <= out_height * out_width) {
        const int64_t above = std::max<int64_t>(0, (step_h - 1 - line.row) / step_h),
                      below = height > line.row ? (height - 1 - line.row) / step_h + 1 : 0;
        stop = std::clamp<int64_t>(below * out_width - at, 0, stop),
        skip = std::clamp<int64_t>(above * out_width - at, 0, stop);
      }
      tile.x += skip, tile.dy += skip * tile.dy_stride, tile.pixels = stop - skip;
    };
    if (turned_) {
      int located = -1;
      for (int64_t i = piece0; i < piece1; ++i) {
        const FilterPiece& piece = pieces_[size_t(i)];
        const Panel& panel = line_panels_[size_t(piece.rows)];
        const Tap& line = lines_[size_t(piece.tap)];
        if (piece.tap != located) locate(line, rows, bounds, p, end, pointers, zeros);
        located = piece.tap;
        fetch_ahead(share);
        FilterTile tile{pointers,  piece.begin, dy + (p - from) * dy_stride + first_column,
                        dy_stride, 0,           nullptr,
                        wide,      panel.tail,  p > from};
        rows_inside(line, tile);
        const float* dy_of_tile = tile.dy;
        const int64_t most = isa.max_rows[panel.vectors], groups_of_rows = (columns + most - 1) / most;
        for (int64_t g = 0; g < groups_of_rows; ++g) {
          const int64_t c = columns * g / groups_of_rows;
          tile.dy = dy_of_tile + c, tile.out = sums + ((i - piece0) * columns + c) * wide;
          isa.turned[panel.vectors][columns * (g + 1) / groups_of_rows - c](tile);
        }
      }
      p = end;
      continue;
    }
    for (int64_t k = first; k < last; ++k) {
      const Panel& panel = panels_[size_t(k)];
      const int64_t packed_wide = int64_t(panel.vectors) * isa.lanes, begin = panel.group * channels + panel.begin;
      FilterTile tile{pointers,  0,          dy + (p - from) * dy_stride + begin,
                      dy_stride, end - p,    nullptr,
                      filter_k,  panel.tail, add || p > from};
      if (dy_stride > kNearPixels) {
        isa.pack(packed, tile.dy, end - p, dy_stride, panel.vectors, panel.channels);
        tile.dy = packed, tile.dy_stride = packed_wide;
      }
      Pixels<const float> s = rows;
      s.data += panel.group * source_group;
      int located = -1;
      for (int64_t i = piece0; i < piece1; ++i) {
        const FilterPiece& piece = pieces_[size_t(i)];
        const Tap& line = lines_[size_t(piece.tap)];
        if (piece.tap != located) locate(line, s, bounds, p, end, pointers, zeros);
        located = piece.tap;
        fetch_ahead(share);
        FilterTile t = tile;
        rows_inside(line, t);
        t.offset = piece.begin;
        t.out = dfilter + begin + line.filter + piece.begin * filter_k;
        isa.filter[panel.vectors][piece.rows](t);
      }
    }
    p = end;
  }
  if (!turned_) return;
  for (int64_t i = piece0; i < piece1; ++i) {
    const FilterPiece& piece = pieces_[size_t(i)];
    isa.unturn(dfilter + first_column + lines_[size_t(piece.tap)].filter + piece.begin * filter_k, filter_k,
               sums + (i - piece0) * columns * wide, wide, line_panels_[size_t(piece.rows)].channels, columns, add);
  }
}

ConvCut::ConvCut(const ConvGrid& grid) {
  const int64_t pixels = grid.pixels(), panels = int64_t(grid.panels().size());
  const double all = double(pixels) * double(grid.depth() * grid.channels * grid.groups);
  pixel_blocks = even_blocks((pixels + kBlockPixels - 1) / kBlockPixels);
  const int64_t wanted = std::clamp<int64_t>(int64_t(all / kBlockWork), 1, kBlocks);
  panel_blocks = std::clamp<int64_t>((wanted + pixel_blocks - 1) / pixel_blocks, 1, std::max<int64_t>(1, panels));
}

FilterCut::FilterCut(const ConvGrid& grid, int64_t runs) {
  const int64_t size = grid.depth() * grid.channels * grid.groups, panels = int64_t(grid.panels().size());
  splits = std::clamp<int64_t>(kPartials / std::max<int64_t>(1, size * 4), 1,
                               std::min<int64_t>(kSplits, std::max<int64_t>(1, runs)));
  const int64_t wanted = std::clamp<int64_t>(int64_t(double(grid.pixels()) * double(size) / kBlockWork), 1, kBlocks);
  splits = std::min(splits, wanted);
  panel_blocks = std::clamp<int64_t>((wanted + splits - 1) / splits, 1, std::max<int64_t>(1, panels));
  if (!grid.each)
    row_blocks = std::clamp<int64_t>(grid.depth() / kRowsInBlock, 1,
                                     (wanted + panel_blocks * splits - 1) / (panel_blocks * splits));
}

}  // namespace millpond::backend::cpu
