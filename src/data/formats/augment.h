// Flip, crop, rotate, brightness and resize of one image, height x width x channels, uint8 or float32.
// What is random is drawn from (seed, element, draw), so the same element gets the same change on any thread, in any
// order and after a restart.
// Memory: none but a Resizer's: two rows of the result and a table of 12 bytes for each column, kept for the next
// image.
#pragma once
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "millpond/error.h"

namespace millpond::data {

/// T is uint8_t, float, or the const of one of them. Borrows.
template <class T>
struct Image {
  T* data = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t stride = 0;  // values from one row to the next; 0: width * channels

  int64_t step() const { return stride ? stride : width * channels; }
  T* row(int64_t y) const { return data + y * step(); }
  operator Image<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, height, width, channels, stride};
  }
};

/// Numbers for one element of a data set; draws are counted, so call them in a fixed order.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t element) : random_(random_key(seed, element)) {}
  double uniform() { return random_.uniform(); }  // [0, 1)
  double uniform(double from, double to) { return from + (to - from) * random_.uniform(); }
  bool coin(double chance = 0.5) { return random_.uniform() < chance; }
  int64_t below(int64_t n) { return int64_t(random_.below(uint64_t(n))); }

 private:
  Random random_;
};

/// In place.
template <class T>
void flip_horizontal(Image<T> image);
template <class T>
void flip_vertical(Image<T> image);

/// A view of a part; nothing is copied. Throws Error(kShape) where the part leaves the image.
template <class T>
Image<T> crop(Image<T> image, int64_t top, int64_t left, int64_t height, int64_t width);
template <class T>
Image<T> center_crop(Image<T> image, int64_t height, int64_t width);
template <class T>
Image<T> random_crop(Image<T> image, int64_t height, int64_t width, Draws& draws);

/// Adds `delta` to every value and keeps it within [low, high]; uint8 is rounded to nearest.
template <class T>
void brightness(Image<T> image, float delta, float low = 0, float high = 255);

enum class Sampling : uint8_t { kNearest, kBilinear };
enum class Fill : uint8_t {
  kConstant,
  kNearest,
  kReflect
};  // what lies outside: a value; the border; d c b a | a b c d

/// Turns counter-clockwise about the centre, into another image of any size (centre upon centre). Not in place.
template <class T>
void rotate(Image<const T> from, Image<T> to, double radians, Sampling sampling = Sampling::kBilinear,
            Fill fill = Fill::kReflect, float value = 0);

/// Resizes as tf.image.resize does (half-pixel centres, antialias off): the same float32 operations. One for each
/// thread.
class Resizer {
 public:
  /// uint8 results of kBilinear are rounded to nearest. Throws Error(kShape) where channels differ or a side is 0.
  void resize(Image<const uint8_t> from, Image<uint8_t> to, Sampling sampling = Sampling::kBilinear);
  void resize(Image<const uint8_t> from, Image<float> to, Sampling sampling = Sampling::kBilinear);
  void resize(Image<const float> from, Image<float> to, Sampling sampling = Sampling::kBilinear);

 private:
  template <class In, class Out>
  void run(Image<const In> from, Image<Out> to, Sampling sampling);
  struct Column {
    int32_t left = 0, right = 0;  // values from the begin of the row
    float share = 0;              // of right
  };
  int64_t from_width_ = 0, to_width_ = 0, channels_ = 0;  // columns_ is for these
  std::vector<Column> columns_;
  std::vector<float> rows_;
};

/// value * scale + offset as float32: uint8 images into what a model eats.
void to_float(Image<const uint8_t> from, Image<float> to, float scale, float offset = 0);

}  // namespace millpond::data
