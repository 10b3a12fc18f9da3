#include "data/formats/helpers.h"

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
// jpeglib.h wants stdio's types first.
#include <jpeglib.h>

namespace millpond::data {

std::string deflated(std::string_view text, int window_bits, int level) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, uLong(text.size())) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = uInt(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = uInt(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

Picture picture(int height, int width, int channels, uint64_t seed) {
  Picture p{height, width, channels};
  Random random(seed);
  const double a = random.uniform() * 6, b = random.uniform() * 6;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        p.values.push_back(
            uint8_t(128 + 90 * std::sin(a + 0.11 * x + c) * std::cos(b + 0.07 * y) + 8 * random.uniform()));
  return p;
}

std::string jpeg_of(const Picture& p, const JpegHow& how) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = JDIMENSION(p.width);
  info.image_height = JDIMENSION(p.height);
  info.input_components = p.channels;
  info.in_color_space = p.channels == 1 ? JCS_GRAYSCALE : p.channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, how.quality, TRUE);
  if (how.full_colour)
    for (int i = 0; i < info.num_components; ++i) info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
  if (how.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < p.height; ++y) {
    auto* row = const_cast<JSAMPLE*>(p.values.data() + size_t(y * p.width * p.channels));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return out;
}

std::string png_of(const Picture& p, const PngHow& how) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp s, png_bytep b, size_t n) {
        static_cast<std::string*>(png_get_io_ptr(s))->append(reinterpret_cast<char*>(b), n);
      },
      [](png_structp) {});
  int colour = p.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
  if (how.alpha) colour |= PNG_COLOR_MASK_ALPHA;
  if (how.palette) colour = PNG_COLOR_TYPE_PALETTE;
  png_set_IHDR(png, info, png_uint_32(p.width), png_uint_32(p.height), how.depth, colour,
               how.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_color palette[256];
  for (int i = 0; i < 256; ++i) palette[i] = {png_byte(i), png_byte(255 - i), png_byte(i / 2)};
  if (how.palette) {
    const png_byte alpha[3] = {0, 100, 200};
    png_set_PLTE(png, info, palette, 1 << how.depth);
    png_set_tRNS(png, info, alpha, how.depth > 1 ? 3 : 2, nullptr);
  }
  png_write_info(png, info);
  Random random(5);
  const int extra = how.alpha ? 1 : 0;
  std::vector<std::vector<uint8_t>> rows;
  for (int y = 0; y < p.height; ++y) {
    std::vector<uint8_t> row;
    int bits = 0, held = 0;
    for (int x = 0; x < p.width; ++x)
      for (int c = 0; c < p.channels + extra; ++c) {
        const uint8_t v = c < p.channels ? p.at(y, x, c) : uint8_t(random.below(256));
        if (how.depth < 8) {  // the highest bits of the value
          held = held << how.depth | v >> (8 - how.depth);
          bits += how.depth;
          if (bits == 8) row.push_back(uint8_t(held)), bits = held = 0;
          continue;
        }
        row.push_back(v);
        if (how.depth == 16) row.push_back(uint8_t(random.below(256)));
      }
    if (bits) row.push_back(uint8_t(held << (8 - bits)));
    rows.push_back(std::move(row));
  }
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(row.data());
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

}  // namespace millpond::data
