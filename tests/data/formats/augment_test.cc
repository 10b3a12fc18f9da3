#include "data/formats/augment.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
template <class T>
struct Held {
  std::vector<T> values;
  Image<T> image;
  Held(int64_t h, int64_t w, int64_t c, int64_t gap = 0, uint64_t seed = 1) : values(size_t(h * (w * c + gap) + 1)) {
    Random random(seed);
    for (T& v : values) v = T(random.below(256));
    image = {values.data(), h, w, c, gap ? w * c + gap : 0};
  }
  T at(int64_t y, int64_t x, int64_t k) const { return image.row(y)[x * image.channels + k]; }
};

// The formula of tf.image.resize as a loop, in double: the slow twin.
template <class T>
double resized_at(const Held<T>& in, int64_t height, int64_t width, int64_t y, int64_t x, int64_t k) {
  const auto place = [](int64_t i, int64_t out, int64_t size) {
    return (double(i) + 0.5) * double(size) / double(out) - 0.5;
  };
  const double v = place(y, height, in.image.height), u = place(x, width, in.image.width);
  const auto pixel = [&](double py, double px) {
    return double(in.at(std::clamp<int64_t>(int64_t(py), 0, in.image.height - 1),
                        std::clamp<int64_t>(int64_t(px), 0, in.image.width - 1), k));
  };
  const double fv = std::floor(v), fu = std::floor(u), b = v - fv, a = u - fu;
  return (pixel(fv, fu) * (1 - a) + pixel(fv, fu + 1) * a) * (1 - b) +
         (pixel(fv + 1, fu) * (1 - a) + pixel(fv + 1, fu + 1) * a) * b;
}
}  // namespace

TEST_CASE_TEMPLATE("augment: flips turn rows and columns round, twice is nothing, and the gap between rows stays", T,
                   uint8_t, float) {
  for (const auto& [h, w, c] : {std::tuple{1, 1, 1}, {4, 5, 3}, {7, 2, 2}, {3, 1, 4}}) {
    const Held<T> before(h, w, c, 3);
    Held<T> after = before;
    after.image.data = after.values.data();
    flip_horizontal(after.image);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        for (int k = 0; k < c; ++k) REQUIRE(after.at(y, x, k) == before.at(y, w - 1 - x, k));
    flip_vertical(after.image);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        for (int k = 0; k < c; ++k) REQUIRE(after.at(y, x, k) == before.at(h - 1 - y, w - 1 - x, k));
    flip_horizontal(after.image);
    flip_vertical(after.image);
    CHECK(after.values == before.values);
  }
}

TEST_CASE("augment: a crop is a view; random ones lie everywhere inside and depend on seed and element alone") {
  Held<uint8_t> image(6, 8, 3);
  const Image<uint8_t> part = crop(image.image, 2, 3, 4, 5);
  CHECK(part.row(1)[2] == image.at(3, 3, 2));
  CHECK(part.height == 4);
  CHECK(thrown([&] { crop(image.image, 3, 0, 4, 8); }).text() ==
        "a crop of 4 x 8 at row 3, column 0 leaves an image of 6 x 8 x 3");
  CHECK(thrown([&] { crop(image.image, 0, 0, 0, 8); }).code() == Code::kShape);
  CHECK(center_crop(image.image, 2, 2).data == image.image.row(2) + 3 * 3);
  std::vector<int> seen(15);
  for (uint64_t element = 0; element < 3000; ++element) {
    Draws a(5, element), b(5, element);
    const auto one = random_crop(image.image, 4, 4, a), two = random_crop(image.image, 4, 4, b);
    REQUIRE(one.data == two.data);
    const auto at = one.data - image.image.data;
    ++seen[size_t(at / 24 * 5 + at % 24 / 3)];
  }
  for (int n : seen) CHECK((n > 120 && n < 290));  // 200 expected, deviation 14
  Draws d(1, 1);
  CHECK(thrown([&] { random_crop(image.image, 7, 1, d); }).code() == Code::kShape);
}

TEST_CASE("augment: draws of neighbouring elements and seeds do not resemble each other") {
  double product = 0;
  const int n = 20000;
  for (uint64_t i = 0; i < n; ++i) product += (Draws(1, i).uniform() - 0.5) * (Draws(1, i + 1).uniform() - 0.5) * 12;
  CHECK(std::abs(product / n) < 4 / std::sqrt(double(n)));
  product = 0;
  for (uint64_t i = 0; i < n; ++i) product += (Draws(i, 7).uniform() - 0.5) * (Draws(i + 1, 7).uniform() - 0.5) * 12;
  CHECK(std::abs(product / n) < 4 / std::sqrt(double(n)));
}

TEST_CASE("augment: brightness adds, rounds and stays in its range") {
  for (float delta : {-300.f, -10.4f, 0.f, 0.5f, 77.6f, 1000.f}) {
    Held<uint8_t> a(5, 5, 3);
    const Held<uint8_t> before = a;
    brightness(a.image, delta);
    for (size_t i = 0; i < 75; ++i)
      REQUIRE(a.values[i] == uint8_t(std::floor(std::clamp(float(before.values[i]) + delta, 0.f, 255.f) + 0.5f)));
    Held<float> f(5, 5, 3);
    const std::vector<float> was = f.values;
    brightness(f.image, delta, -1000, 1000);
    for (size_t i = 0; i < 75; ++i) REQUIRE(f.values[i] == std::clamp(was[i] + delta, -1000.f, 1000.f));
  }
  Held<uint8_t> a(2, 2, 1);
  CHECK(thrown([&] { brightness(a.image, NAN); }).code() == Code::kValue);
}

TEST_CASE(
    "augment: resizing agrees with the formula in double, for every type, both ways, and stays inside its buffers") {
  Resizer r;
  for (const auto& [h, w, oh, ow, c] : {std::tuple{5, 7, 5, 7, 3},
                                        {8, 8, 4, 4, 3},
                                        {4, 4, 9, 13, 3},
                                        {100, 60, 33, 61, 1},
                                        {1, 1, 3, 2, 3},
                                        {37, 53, 1, 1, 2},
                                        {256, 256, 224, 224, 3}}) {
    const Held<uint8_t> in(h, w, c, 4);
    const Held<float> fin(h, w, c);
    Held<float> out(oh, ow, c, 5), fout(oh, ow, c);
    Held<uint8_t> small(oh, ow, c);
    const std::vector<float> guard = out.values;
    r.resize(in.image, out.image);
    r.resize(in.image, small.image);
    r.resize(fin.image, fout.image);
    for (int y = 0; y < oh; ++y)
      for (int x = 0; x < ow; ++x)
        for (int k = 0; k < c; ++k) {
          // Places are float32 with at most two roundings of up to 2^-24 of the size; a step between pixels is up to
          // 255.
          const double wanted = resized_at(in, oh, ow, y, x, k),
                       tolerance = 255 * 4 * double(std::max(h, w)) * 0x1p-24 + 1e-4;
          REQUIRE(std::abs(out.at(y, x, k) - wanted) <= tolerance);
          REQUIRE(std::abs(small.at(y, x, k) - wanted) <= 0.5 + tolerance);
          REQUIRE(std::abs(fout.at(y, x, k) - resized_at(fin, oh, ow, y, x, k)) <= tolerance);
        }
    for (int y = 0; y < oh; ++y)
      for (int i = ow * c; i < ow * c + 5; ++i)
        REQUIRE(out.values[size_t(y * (ow * c + 5) + i)] == guard[size_t(y * (ow * c + 5) + i)]);
    r.resize(in.image, small.image, Sampling::kNearest);
    for (int y = 0; y < oh; ++y)
      for (int x = 0; x < ow; ++x)
        REQUIRE(small.at(y, x, 0) == in.at(std::min(int64_t((y + 0.5) * h / oh), int64_t(h - 1)),
                                           std::min(int64_t((x + 0.5) * w / ow), int64_t(w - 1)), 0));
  }
  Held<float> a(2, 2, 3), b(2, 2, 1);
  CHECK(thrown([&] { r.resize(a.image, b.image); }).text() == "an image of 2 x 2 x 3 cannot be resized to 2 x 2 x 1");
}

TEST_CASE_TEMPLATE("augment: quarter turns are exact, the other corners are filled as asked", T, uint8_t, float) {
  const Held<T> in(6, 6, 3, 2);
  for (Sampling how : {Sampling::kNearest, Sampling::kBilinear}) {
    Held<T> out(6, 6, 3);
    rotate<T>(in.image, out.image, std::numbers::pi / 2, how);
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 6; ++x)
        for (int k = 0; k < 3; ++k)
          REQUIRE(std::abs(double(out.at(y, x, k)) - double(in.at(x, 5 - y, k))) < 1e-3);  // the right side comes up
    rotate<T>(in.image, out.image, 0.0, how);
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 6; ++x) REQUIRE(out.at(y, x, 1) == in.at(y, x, 1));
    // A larger result around the image: constant, the border, the mirror.
    Held<T> wide(6, 10, 3);
    rotate<T>(in.image, wide.image, 0.0, how, Fill::kConstant, 9);
    CHECK((wide.at(2, 1, 0) == T(9) && wide.at(2, 2, 0) == in.at(2, 0, 0) && wide.at(2, 8, 0) == T(9)));
    rotate<T>(in.image, wide.image, 0.0, how, Fill::kNearest);
    CHECK((wide.at(2, 0, 0) == in.at(2, 0, 0) && wide.at(2, 9, 0) == in.at(2, 5, 0)));
    rotate<T>(in.image, wide.image, 0.0, how, Fill::kReflect);
    CHECK((wide.at(2, 1, 0) == in.at(2, 0, 0) && wide.at(2, 0, 0) == in.at(2, 1, 0) &&
           wide.at(2, 9, 0) == in.at(2, 4, 0)));
  }
}

TEST_CASE("augment: any angle keeps a flat image flat and stays within its values") {
  Held<uint8_t> flat(9, 12, 3), out(9, 12, 3);
  std::fill(flat.values.begin(), flat.values.end(), uint8_t(100));
  for (double angle : {0.1, 1.0, -2.5, 100.0}) {
    rotate<uint8_t>(flat.image, out.image, angle);
    for (size_t i = 0; i < 9 * 12 * 3; ++i) REQUIRE(out.values[i] == 100);
  }
  CHECK(thrown([&] { rotate<uint8_t>(flat.image, out.image, NAN); }).code() == Code::kValue);
}

TEST_CASE("augment: uint8 becomes float by scale and offset") {
  const Held<uint8_t> in(3, 4, 3, 2);
  Held<float> out(3, 4, 3);
  to_float(in.image, out.image, 1 / 127.5f, -1);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 4; ++x) CHECK(out.at(y, x, 2) == float(in.at(y, x, 2)) * (1 / 127.5f) - 1);
}
