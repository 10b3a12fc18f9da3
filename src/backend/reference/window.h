// window: where the taps of convolutions and pools fall.
#pragma once
#include "ops/conv2d.h"

namespace millpond::backend::reference {

/// Geometry of images x [n, height, width, in] and y [n, out_height, out_width, out] under a window.
struct Geometry {
  Geometry(const ops::Window& w, const Shape& x, const Shape& y)
      : window(w), n(x[0]), height(x[1]), width(x[2]), in(x[3]), out_height(y[1]), out_width(y[2]), out(y[3]) {}

  /// Calls f(p, q, h, v) for each tap (p, q) of output place (i, j) whose image place (h, v) is not padding, row by
  /// row.
  template <class F>
  void taps(int64_t i, int64_t j, F f) const {
    for (int64_t p = 0; p < window.height; ++p) {
      const int64_t h = i * window.stride_h + p * window.dilation_h - window.top;
      for (int64_t q = 0; q < window.width; ++q) {
        const int64_t v = j * window.stride_w + q * window.dilation_w - window.left;
        if (h >= 0 && h < height && v >= 0 && v < width) f(p, q, h, v);
      }
    }
  }
  /// The other way: calls f(p, q, i, j) for each output place (i, j) whose tap (p, q) falls on image place (h, v).
  template <class F>
  void readers(int64_t h, int64_t v, F f) const {
    for (int64_t p = 0; p < window.height; ++p) {
      const int64_t i = h + window.top - p * window.dilation_h;
      if (i < 0 || i % window.stride_h || i / window.stride_h >= out_height) continue;
      for (int64_t q = 0; q < window.width; ++q) {
        const int64_t j = v + window.left - q * window.dilation_w;
        if (j < 0 || j % window.stride_w || j / window.stride_w >= out_width) continue;
        f(p, q, i / window.stride_h, j / window.stride_w);
      }
    }
  }
  int64_t x_at(int64_t b, int64_t h, int64_t v, int64_t c) const { return ((b * height + h) * width + v) * in + c; }
  int64_t y_at(int64_t b, int64_t i, int64_t j, int64_t o) const {
    return ((b * out_height + i) * out_width + j) * out + o;
  }
  template <class F>
  void each_output(F f) const {
    for (int64_t b = 0; b < n; ++b)
      for (int64_t i = 0; i < out_height; ++i)
        for (int64_t j = 0; j < out_width; ++j)
          for (int64_t o = 0; o < out; ++o) f(b, i, j, o);
  }
  template <class F>
  void each_input(F f) const {
    for (int64_t b = 0; b < n; ++b)
      for (int64_t h = 0; h < height; ++h)
        for (int64_t v = 0; v < width; ++v)
          for (int64_t c = 0; c < in; ++c) f(b, h, v, c);
  }

  ops::Window window;
  int64_t n, height, width, in, out_height, out_width, out;
};

/// filter[p, q, c, o] of a convolution in groups; c counts within the group.
struct Filter {
  Filter(const Shape& f, int64_t groups) : width(f[1]), in(f[2]), out(f[3]), out_of_group(f[3] / groups) {}
  int64_t at(int64_t p, int64_t q, int64_t c, int64_t o) const { return ((p * width + q) * in + c) * out + o; }
  int64_t first_channel(int64_t o) const { return o / out_of_group * in; }  // of x, that output channel o reads
  int64_t width, in, out, out_of_group;
};

}  // namespace millpond::backend::reference
