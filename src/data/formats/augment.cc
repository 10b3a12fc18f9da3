#include "data/formats/augment.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/format.h"

namespace millpond::data {

namespace {
template <class T>
T rounded(float v) {
  if constexpr (std::is_same_v<T, uint8_t>)
    return uint8_t(std::clamp(v, 0.f, 255.f) + 0.5f);
  else
    return v;
}

// Without SSE 4.1 std::floor is a call.
[[gnu::always_inline]] inline int64_t floored(double v) {
  const auto i = int64_t(v);
  return i - (double(i) > v);
}

// Four values as floats; the fourth of a pixel of three channels belongs to the next one and is not used.
[[gnu::always_inline]] inline __m128 four(const uint8_t* p) {
  int32_t bytes;
  std::memcpy(&bytes, p, 4);
  const __m128i zero = _mm_setzero_si128();
  return _mm_cvtepi32_ps(_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zero), zero));
}
[[gnu::always_inline]] inline __m128 four(const float* p) { return _mm_loadu_ps(p); }
[[gnu::always_inline]] inline __m128 between(__m128 a, __m128 b, __m128 share) {
  return _mm_add_ps(a, _mm_mul_ps(_mm_sub_ps(b, a), share));
}

template <class T>
std::string size_of(const Image<T>& i) {
  return format("{} x {} x {}", i.height, i.width, i.channels);
}
}  // namespace

template <class T>
void flip_horizontal(Image<T> image) {
  const int64_t c = image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    T* left = image.row(y);
    T* right = left + (image.width - 1) * c;
    for (; left < right; left += c, right -= c)
      for (int64_t k = 0; k < c; ++k) std::swap(left[k], right[k]);
  }
}

template <class T>
void flip_vertical(Image<T> image) {
  const int64_t n = image.width * image.channels;
  for (int64_t y = 0; y < image.height / 2; ++y)
    std::swap_ranges(image.row(y), image.row(y) + n, image.row(image.height - 1 - y));
}

template <class T>
Image<T> crop(Image<T> image, int64_t top, int64_t left, int64_t height, int64_t width) {
  if (top < 0 || left < 0 || height < 1 || width < 1 || height > image.height - top || width > image.width - left)
    throw Error(Code::kShape, format("a crop of {} x {} at row {}, column {} leaves an image of {}", height, width, top,
                                     left, size_of(image)))
        .hint("crop less, or resize first");
  return {image.row(top) + left * image.channels, height, width, image.channels, image.step()};
}
template <class T>
Image<T> center_crop(Image<T> image, int64_t height, int64_t width) {
  return crop(image, (image.height - height) / 2, (image.width - width) / 2, height, width);
}
template <class T>
Image<T> random_crop(Image<T> image, int64_t height, int64_t width, Draws& draws) {
  if (height > image.height || width > image.width) return crop(image, 0, 0, height, width);  // says what is wrong
  const int64_t top = draws.below(image.height - height + 1), left = draws.below(image.width - width + 1);
  return crop(image, top, left, height, width);
}

template <class T>
void brightness(Image<T> image, float delta, float low, float high) {
  if (!std::isfinite(delta) || !(low <= high))
    throw Error(Code::kValue, format("brightness by {} within [{}, {}]", delta, low, high));
  const int64_t n = image.width * image.channels;
  if constexpr (std::is_same_v<T, uint8_t>) {
    std::array<uint8_t, 256> table;
    for (size_t v = 0; v < 256; ++v) table[v] = rounded<uint8_t>(std::clamp(float(v) + delta, low, high));
    for (int64_t y = 0; y < image.height; ++y)
      for (T *p = image.row(y), *end = p + n; p < end; ++p) *p = table[*p];
  } else {
    for (int64_t y = 0; y < image.height; ++y)
      for (T *p = image.row(y), *end = p + n; p < end; ++p) *p = std::min(std::max(*p + delta, low), high);
  }
}

// ---- rotate ----

namespace {
// The place inside [0, n) that stands for i; -1: outside, the constant.
int64_t place(int64_t i, int64_t n, Fill fill) {
  if (i >= 0 && i < n) return i;
  switch (fill) {
    case Fill::kConstant:
      return -1;
    case Fill::kNearest:
      return i < 0 ? 0 : n - 1;
    default: {
      int64_t r = i % (2 * n);
      if (r < 0) r += 2 * n;
      return r < n ? r : 2 * n - 1 - r;
    }
  }
}
}  // namespace

template <class T>
void rotate(Image<const T> from, Image<T> to, double radians, Sampling sampling, Fill fill, float value) {
  if (from.channels != to.channels || from.height < 1 || from.width < 1)
    throw Error(Code::kShape, format("an image of {} cannot be turned into one of {}", size_of(from), size_of(to)));
  if (!std::isfinite(radians)) throw Error(Code::kValue, "an image cannot be turned by what is not a number");
  const double c = std::cos(radians), s = std::sin(radians);
  const double from_x = double(from.width - 1) / 2, from_y = double(from.height - 1) / 2;
  const double to_x = double(to.width - 1) / 2, to_y = double(to.height - 1) / 2;
  const int64_t n = from.channels;
  for (int64_t y = 0; y < to.height; ++y) {
    T* out = to.row(y);
    const double dy = double(y) - to_y;
    for (int64_t x = 0; x < to.width; ++x, out += n) {
      const double dx = double(x) - to_x;
      const double u = from_x + dx * c - dy * s, v = from_y + dx * s + dy * c;
      if (sampling == Sampling::kNearest) {
        const int64_t px = place(floored(u + 0.5), from.width, fill), py = place(floored(v + 0.5), from.height, fill);
        for (int64_t k = 0; k < n; ++k) out[k] = px < 0 || py < 0 ? rounded<T>(value) : from.row(py)[px * n + k];
        continue;
      }
      const int64_t x0 = floored(u), y0 = floored(v);
      const float a = float(u - double(x0)), b = float(v - double(y0));
      if (n == 3 && x0 >= 0 && x0 + 2 < from.width && y0 >= 0 &&
          y0 + 1 < from.height) {  // + 2: four() reads a value more
        const T *p = from.row(y0) + x0 * 3, *q = from.row(y0 + 1) + x0 * 3;
        const __m128 share = _mm_set1_ps(a);
        alignas(16) float mixed[4];
        _mm_store_ps(
            mixed, between(between(four(p), four(p + 3), share), between(four(q), four(q + 3), share), _mm_set1_ps(b)));
        for (int k = 0; k < 3; ++k) out[k] = rounded<T>(mixed[k]);
        continue;
      }
      const int64_t xs[2] = {place(x0, from.width, fill), place(x0 + 1, from.width, fill)};
      const int64_t ys[2] = {place(y0, from.height, fill), place(y0 + 1, from.height, fill)};
      for (int64_t k = 0; k < n; ++k) {
        const auto at = [&](int i, int j) {
          return xs[i] < 0 || ys[j] < 0 ? value : float(from.row(ys[j])[xs[i] * n + k]);
        };
        const float top = at(0, 0) + (at(1, 0) - at(0, 0)) * a, bottom = at(0, 1) + (at(1, 1) - at(0, 1)) * a;
        out[k] = rounded<T>(top + (bottom - top) * b);
      }
    }
  }
}

// ---- resize ----

namespace {
// TensorFlow computes these in float32, and so the same pixels are chosen.
struct Blend {
  int64_t low, high;
  float share;  // of high
};
Blend blend(int64_t i, int64_t in_size, float scale) {
  const float in = (float(i) + 0.5f) * scale - 0.5f, below = std::floor(in);
  return {std::max<int64_t>(int64_t(below), 0), std::min<int64_t>(int64_t(std::ceil(in)), in_size - 1), in - below};
}
int64_t nearest(int64_t i, int64_t in_size, float scale) {
  return std::min<int64_t>(int64_t(std::floor((float(i) + 0.5f) * scale)), in_size - 1);
}

// One row of the source, stretched to the width of the result.
template <int kChannels, class In, class Column>
void stretch(const In* from, int64_t values, float* to, const Column* columns, int64_t width, int64_t channels) {
  const int64_t n = kChannels ? kChannels : channels;
  int64_t x = 0;
  if constexpr (kChannels == 3) {
    // Four values at once: up to where the value behind a pixel would lie behind the row, of source or result.
    for (; x + 1 < width && columns[x].right + 4 <= values; ++x, to += 3) {
      const Column& c = columns[x];
      _mm_storeu_ps(to, between(four(from + c.left), four(from + c.right), _mm_set1_ps(c.share)));
    }
  }
  for (; x < width; ++x, to += n) {
    const Column& c = columns[x];
    for (int64_t k = 0; k < n; ++k) {
      const float left = float(from[c.left + k]), right = float(from[c.right + k]);
      to[k] = left + (right - left) * c.share;
    }
  }
}
}  // namespace

template <class In, class Out>
void Resizer::run(Image<const In> from, Image<Out> to, Sampling sampling) {
  if (from.channels != to.channels || std::min({from.height, from.width, to.height, to.width}) < 1 ||
      INT32_MAX / from.width < from.channels)
    throw Error(Code::kShape, format("an image of {} cannot be resized to {}", size_of(from), size_of(to)));
  const int64_t n = to.channels, values = to.width * n;
  const float scale_y = float(from.height) / float(to.height), scale_x = float(from.width) / float(to.width);
  if (sampling == Sampling::kNearest) {
    for (int64_t y = 0; y < to.height; ++y) {
      const In* in = from.row(nearest(y, from.height, scale_y));
      Out* out = to.row(y);
      for (int64_t x = 0; x < to.width; ++x) {
        const In* pixel = in + nearest(x, from.width, scale_x) * n;
        for (int64_t k = 0; k < n; ++k) *out++ = Out(pixel[k]);
      }
    }
    return;
  }
  if (from_width_ != from.width || to_width_ != to.width || channels_ != n) {
    columns_.resize(size_t(to.width));
    for (int64_t x = 0; x < to.width; ++x) {
      const Blend b = blend(x, from.width, scale_x);
      columns_[size_t(x)] = {int32_t(b.low * n), int32_t(b.high * n), b.share};
    }
    from_width_ = from.width, to_width_ = to.width, channels_ = n;
  }
  rows_.resize(size_t(2 * values));
  float* rows[2] = {rows_.data(), rows_.data() + values};
  int64_t held[2] = {-1, -1};  // which row of the source each holds
  const auto want = [&](int slot, int64_t y) {
    if (held[slot] == y) return;
    if (n == 3)
      stretch<3>(from.row(y), from.width * n, rows[slot], columns_.data(), to.width, n);
    else if (n == 1)
      stretch<1>(from.row(y), from.width * n, rows[slot], columns_.data(), to.width, n);
    else
      stretch<0>(from.row(y), from.width * n, rows[slot], columns_.data(), to.width, n);
    held[slot] = y;
  };
  for (int64_t y = 0; y < to.height; ++y) {
    const Blend b = blend(y, from.height, scale_y);
    if (held[1] == b.low) {
      std::swap(rows[0], rows[1]);
      std::swap(held[0], held[1]);
    }
    want(0, b.low);
    want(1, b.high);
    const float *top = rows[0], *bottom = rows[1], share = b.share;
    Out* out = to.row(y);
    for (int64_t i = 0; i < values; ++i) {
      const float v = top[i] + (bottom[i] - top[i]) * share;
      if constexpr (std::is_same_v<Out, uint8_t>)
        out[i] = uint8_t(v + 0.5f);  // of values from 0 to 255
      else
        out[i] = v;
    }
  }
}

void Resizer::resize(Image<const uint8_t> from, Image<uint8_t> to, Sampling sampling) { run(from, to, sampling); }
void Resizer::resize(Image<const uint8_t> from, Image<float> to, Sampling sampling) { run(from, to, sampling); }
void Resizer::resize(Image<const float> from, Image<float> to, Sampling sampling) { run(from, to, sampling); }

void to_float(Image<const uint8_t> from, Image<float> to, float scale, float offset) {
  if (from.channels != to.channels || from.height != to.height || from.width != to.width)
    throw Error(Code::kShape, format("an image of {} cannot be written to one of {}", size_of(from), size_of(to)));
  const int64_t n = from.width * from.channels;
  for (int64_t y = 0; y < from.height; ++y) {
    const uint8_t* in = from.row(y);
    float* out = to.row(y);
    for (int64_t i = 0; i < n; ++i) out[i] = float(in[i]) * scale + offset;
  }
}

#define MP_IMAGE_TYPE(T)                                                            \
  template void flip_horizontal(Image<T>);                                          \
  template void flip_vertical(Image<T>);                                            \
  template Image<T> crop(Image<T>, int64_t, int64_t, int64_t, int64_t);             \
  template Image<T> center_crop(Image<T>, int64_t, int64_t);                        \
  template Image<T> random_crop(Image<T>, int64_t, int64_t, Draws&);                \
  template Image<const T> crop(Image<const T>, int64_t, int64_t, int64_t, int64_t); \
  template Image<const T> center_crop(Image<const T>, int64_t, int64_t);            \
  template Image<const T> random_crop(Image<const T>, int64_t, int64_t, Draws&);    \
  template void brightness(Image<T>, float, float, float);                          \
  template void rotate(Image<const T>, Image<T>, double, Sampling, Fill, float);
MP_IMAGE_TYPE(uint8_t)
MP_IMAGE_TYPE(float)
#undef MP_IMAGE_TYPE

}  // namespace millpond::data
