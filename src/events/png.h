// A picture of three bytes a pixel, as PNG. Costs the picture once more while it is compressed.
#pragma once
#include <cstdint>
#include <string>
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
  /// What lies outside is left out; `to` is not included.
  void fill(int x, int y, int to_x, int to_y, Colour colour);
  std::string png() const;

 private:
  int width_, height_;
  std::vector<Colour> pixels_;
};

}  // namespace millpond::events
