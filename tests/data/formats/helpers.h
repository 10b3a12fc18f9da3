// Bytes in memory as sources, what was thrown, and images made by the libraries' own writers.
#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "data/formats/source.h"
#include "io/scratch.h"

namespace millpond::data {

inline std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }
/// Borrows the text.
inline SharedSource text_source(std::string_view s, std::string name = "test.bin") {
  return view_bytes(bytes_of(s), std::move(name));
}

inline Error thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error(Code::kInterrupted, "nothing was thrown");
}

/// gzip (window bits 31), zlib (15) or deflate alone (-15).
std::string deflated(std::string_view text, int window_bits, int level = 6);

struct Picture {
  int height = 0, width = 0, channels = 3;
  std::vector<uint8_t> values = {};
  uint8_t at(int y, int x, int c) const { return values[size_t((y * width + x) * channels + c)]; }
};
/// Smooth, with a little noise, so that a JPEG of it is close.
Picture picture(int height, int width, int channels, uint64_t seed = 1);
struct JpegHow {
  int quality = 95;
  bool progressive = false;
  bool full_colour = true;  // no subsampling
  bool cmyk = false;        // of 4 channels
};
std::string jpeg_of(const Picture& p, const JpegHow& how = {});
struct PngHow {
  int depth = 8;
  bool alpha = false, palette = false, interlaced = false;
};
/// 16 bits: the value in the upper byte and noise in the lower; alpha: noise; palette: values of one channel as
/// indices.
std::string png_of(const Picture& p, const PngHow& how = {});

}  // namespace millpond::data
