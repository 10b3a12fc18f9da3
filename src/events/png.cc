#include "events/png.h"

#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "base/assert.h"

namespace millpond::events {
namespace {

struct Glyph {
  char letter;
  uint8_t rows[7];
};
constexpr Glyph kGlyphs[] = {
#include "events/glyphs.inc"
};

std::string big_endian(uint32_t v) { return {char(v >> 24), char(v >> 16), char(v >> 8), char(v)}; }

std::string chunk(std::string_view kind, std::string_view data) {
  std::string body(kind);
  body += data;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), uInt(body.size()));
  return big_endian(uint32_t(data.size())) + body + big_endian(uint32_t(crc));
}

}  // namespace

Picture::Picture(int width, int height, Colour ground)
    : width_(width), height_(height), pixels_(size_t(width) * size_t(height), ground) {
  MP_ASSERT(width > 0 && height > 0 && width <= 8192 && height <= 8192);
}

void Picture::fill(int x, int y, int to_x, int to_y, Colour colour) {
  for (int row = std::max(0, y); row < std::min(height_, to_y); ++row)
    for (int column = std::max(0, x); column < std::min(width_, to_x); ++column)
      pixels_[size_t(row) * size_t(width_) + size_t(column)] = colour;
}

void Picture::text(int x, int y, std::string_view words, Colour colour, int scale) {
  for (const char letter : words) {
    const auto glyph = std::ranges::find(kGlyphs, letter, &Glyph::letter);
    for (int row = 0; glyph != std::end(kGlyphs) && row < 7; ++row)
      for (int column = 0; column < 5; ++column)
        if (glyph->rows[row] >> (4 - column) & 1)
          fill(x + column * scale, y + row * scale, x + (column + 1) * scale, y + (row + 1) * scale, colour);
    x += 6 * scale;
  }
}

std::string Picture::png() const {
  std::string rows;
  rows.reserve(size_t(height_) * (size_t(width_) * 3 + 1));
  for (int y = 0; y < height_; ++y) {
    rows += '\0';  // no filter
    for (int x = 0; x < width_; ++x) {
      const Colour& c = pixels_[size_t(y) * size_t(width_) + size_t(x)];
      rows += char(c.red), rows += char(c.green), rows += char(c.blue);
    }
  }
  uLongf size = compressBound(uLong(rows.size()));
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                             reinterpret_cast<const Bytef*>(rows.data()), uLong(rows.size()), 6);
  MP_ASSERT(code == Z_OK);  // the room is as large as zlib asks for
  packed.resize(size);
  std::string head = big_endian(uint32_t(width_)) + big_endian(uint32_t(height_));
  head += std::string_view("\x08\x02\x00\x00\x00", 5);  // eight bits, colours, nothing unusual
  return std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", head) + chunk("IDAT", packed) + chunk("IEND", "");
}

}  // namespace millpond::events
