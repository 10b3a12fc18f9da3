// A picture of three bytes a pixel, as PNG. Costs the picture once more while it is compressed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millpond::events {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

class Picture {
 public:
  Picture(int width, int height, Colour ground);
  int width() const { return width_; }
  int height() const { return height_; }
  Colour at(int x, int y) const { return pixels_[size_t(y) * size_t(width_) + size_t(x)]; }
  /// What lies outside is left out; `to` is not included.
  void fill(int x, int y, int to_x, int to_y, Colour colour);
  /// Letters of 5 by 7 points, each a square of `scale` pixels; (x, y) is the upper left corner. A letter that is not
  /// known is a gap; capitals are those of units.
  void text(int x, int y, std::string_view words, Colour colour, int scale = 2);
  /// How many pixels wide such a text is.
  static int text_width(std::string_view words, int scale = 2) { return int(words.size()) * 6 * scale; }
  std::string png() const;

 private:
  int width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace millpond::events
