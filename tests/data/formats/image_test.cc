#include "data/formats/image.h"

#include <cmath>
#include <cstring>

#include "base/format.h"
#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
struct Decoded {
  ImageSize size;
  std::vector<uint8_t> values;
};
// Between guard bytes, rows a little apart.
Decoded decode(std::string_view file, const ImageOptions& o = {}, ImageDecoder* with = nullptr) {
  ImageDecoder own;
  ImageDecoder& d = with ? *with : own;
  const ImageSize size = decoded_size(image_header(bytes_of(file), "i"), o, "i");
  const int64_t row = size.width * size.channels, stride = row + 5;
  std::vector<uint8_t> room(size_t(64 + stride * size.height + 64), 0xa5);
  const ImageSize got =
      d.decode(bytes_of(file), std::span(room).subspan(64, size_t(stride * (size.height - 1) + row)), o, "i", stride);
  CHECK(got == size);
  Decoded out{size, {}};
  for (int64_t y = 0; y < size.height; ++y) {
    const uint8_t* p = room.data() + 64 + y * stride;
    out.values.insert(out.values.end(), p, p + row);
    for (int64_t i = row; i < stride; ++i) REQUIRE(p[i] == 0xa5);
  }
  for (size_t i = 0; i < 64; ++i) REQUIRE((room[i] == 0xa5 && room[room.size() - 1 - i] == 0xa5));
  return out;
}
double mean_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(int(a[i]) - int(b[i]));
  return sum / double(a.size());
}
}  // namespace

TEST_CASE("image: a JPEG of any kind comes out close to what went in") {
  for (const auto& [height, width] : {std::pair{1, 1}, {7, 9}, {64, 48}, {33, 130}}) {
    for (bool progressive : {false, true}) {
      const Picture colour = picture(height, width, 3), grey = picture(height, width, 1);
      // Quality 95: the quantization steps of the lower frequencies are 1 to 3, so values move by about 1 on average.
      const Decoded c = decode(jpeg_of(colour, {.progressive = progressive}));
      CHECK(c.size == ImageSize{height, width, 3});
      CHECK(mean_difference(c.values, colour.values) < 2.5);
      const Decoded g = decode(jpeg_of(grey, {.progressive = progressive}), {.channels = 1});
      CHECK(g.size == ImageSize{height, width, 1});
      CHECK(mean_difference(g.values, grey.values) < 2.5);
      const Decoded wide = decode(jpeg_of(grey, {.progressive = progressive}));  // grey as RGB
      REQUIRE(wide.values.size() == 3 * g.values.size());
      for (size_t i = 0; i < g.values.size(); ++i)
        for (size_t k = 0; k < 3; ++k) REQUIRE(wide.values[3 * i + k] == g.values[i]);
      CHECK(decode(jpeg_of(grey), {.channels = 0}).size.channels == 1);
      const Decoded y = decode(jpeg_of(colour), {.channels = 1});
      for (int i = 0; i < height * width; ++i) {
        const double luma = 0.299 * colour.values[size_t(3 * i)] + 0.587 * colour.values[size_t(3 * i + 1)] +
                            0.114 * colour.values[size_t(3 * i + 2)];
        REQUIRE(std::abs(luma - y.values[size_t(i)]) < 16);
      }
    }
  }
}

TEST_CASE("image: CMYK becomes RGB by its inks") {
  Picture ink = picture(16, 24, 4);
  const Decoded d = decode(jpeg_of(ink, {.quality = 100}));
  CHECK(d.size == ImageSize{16, 24, 3});
  // libjpeg writes an Adobe marker, so the inks count as inverted: light = ink * black / 255.
  std::vector<uint8_t> wanted;
  for (int i = 0; i < 16 * 24; ++i)
    for (int c = 0; c < 3; ++c)
      wanted.push_back(uint8_t(ink.values[size_t(4 * i + 3)] * ink.values[size_t(4 * i + c)] / 255));
  CHECK(mean_difference(d.values, wanted) < 2.5);
  CHECK(decode(jpeg_of(ink), {.channels = 1}).size == ImageSize{16, 24, 1});
}

TEST_CASE("image: a JPEG is decoded smaller when less is wanted, never below it") {
  const std::string file = jpeg_of(picture(300, 401, 3));
  const auto size = [&](int64_t h, int64_t w) {
    const Decoded d = decode(file, {.at_least_height = h, .at_least_width = w});
    return std::pair(d.size.height, d.size.width);
  };
  CHECK(size(300, 401) == std::pair<int64_t, int64_t>(300, 401));
  CHECK(size(151, 100) == std::pair<int64_t, int64_t>(300, 401));
  CHECK(size(150, 201) == std::pair<int64_t, int64_t>(150, 201));
  CHECK(size(75, 101) == std::pair<int64_t, int64_t>(75, 101));
  CHECK(size(38, 51) == std::pair<int64_t, int64_t>(38, 51));
  CHECK(size(1, 1) == std::pair<int64_t, int64_t>(38, 51));
  // A block of eighths is the mean of its pixels.
  const Decoded whole = decode(file), small = decode(file, {.at_least_height = 1, .at_least_width = 1});
  for (int64_t y = 0; y + 8 <= 296; y += 8)
    for (int64_t x = 0; x + 8 <= 400; x += 8) {
      double sum = 0;
      for (int64_t j = 0; j < 8; ++j)
        for (int64_t i = 0; i < 8; ++i) sum += whole.values[size_t(((y + j) * 401 + x + i) * 3)];
      REQUIRE(std::abs(sum / 64 - small.values[size_t((y / 8 * 51 + x / 8) * 3)]) < 4);
    }
}

TEST_CASE("image: a PNG of any kind comes out exactly") {
  for (const auto& [height, width] : {std::pair{1, 1}, {5, 13}, {40, 33}}) {
    for (bool interlaced : {false, true}) {
      const Picture colour = picture(height, width, 3), grey = picture(height, width, 1);
      for (int depth : {8, 16})
        for (bool alpha : {false, true}) {
          CHECK(decode(png_of(colour, {depth, alpha, false, interlaced})).values == colour.values);
          CHECK(decode(png_of(grey, {depth, alpha, false, interlaced}), {.channels = 1}).values == grey.values);
          CHECK(decode(png_of(grey, {depth, alpha, false, interlaced}), {.channels = 0}).size ==
                ImageSize{height, width, 1});
          const Decoded wide = decode(png_of(grey, {depth, alpha, false, interlaced}));
          for (size_t i = 0; i < wide.values.size(); ++i) REQUIRE(wide.values[i] == grey.values[i / 3]);
        }
      for (int depth : {1, 2, 4}) {
        const Decoded d = decode(png_of(grey, {depth, false, false, interlaced}), {.channels = 1});
        for (size_t i = 0; i < d.values.size(); ++i)
          REQUIRE(d.values[i] == (grey.values[i] >> (8 - depth)) * 255 / ((1 << depth) - 1));
      }
      for (int depth : {1, 2, 4, 8}) {
        const Decoded d = decode(png_of(grey, {depth, false, true, interlaced}));
        REQUIRE(d.values.size() == 3 * grey.values.size());
        for (size_t i = 0; i < grey.values.size(); ++i) {
          const int index = grey.values[i] >> (8 - depth);
          REQUIRE((d.values[3 * i] == index && d.values[3 * i + 1] == 255 - index && d.values[3 * i + 2] == index / 2));
        }
      }
      const Decoded luma = decode(png_of(colour), {.channels = 1});
      for (int i = 0; i < height * width; ++i) {
        const uint8_t* p = colour.values.data() + 3 * i;
        REQUIRE(std::abs(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] - luma.values[size_t(i)]) < 1.5);
      }
    }
  }
}

TEST_CASE("image: the size is read from the header alone") {
  const std::string jpeg = jpeg_of(picture(20, 30, 3)), png = png_of(picture(7, 9, 1));
  CHECK(image_size(bytes_of(jpeg), "i") == ImageSize{20, 30, 3});
  CHECK(image_size(bytes_of({jpeg.data(), 400}), "i") == ImageSize{20, 30, 3});
  CHECK(image_size(bytes_of({png.data(), 29}), "i") == ImageSize{7, 9, 1});
  CHECK(
      thrown([] { image_size(bytes_of("GIF89a"), "x.gif"); }).what() ==
      std::string(
          "x.gif: at byte 0 expected a JPEG or PNG image, found \"GIF89a\"; convert it, or leave it out of the folder\n"
          "  file     x.gif\n  where    byte 0\n  expected a JPEG or PNG image\n  found    \"GIF89a\""));
  CHECK(thrown([] { image_size({}, "x"); }).code() == Code::kFormat);
}

TEST_CASE("image: cut at any byte it is refused, and the decoder goes on to work") {
  ImageDecoder decoder;
  const Picture p = picture(16, 16, 3);
  for (const std::string& whole :
       {jpeg_of(p), jpeg_of(p, {.progressive = true}), png_of(p), png_of(p, {8, false, false, true})}) {
    for (size_t n = 0; n < whole.size(); ++n) {
      const std::string part = whole.substr(0, n);
      const Error e = thrown([&] { decode(part, {}, &decoder); });
      REQUIRE(e.code() == Code::kFormat);
      REQUIRE(e.details()[0].second == "i");
    }
    CHECK(decode(whole, {}, &decoder).values == decode(whole).values);
  }
}

TEST_CASE("image: warnings are errors, or counted when tolerated") {
  const Picture p = picture(64, 64, 3);
  const std::string whole = jpeg_of(p), half = whole.substr(0, whole.size() * 2 / 3);
  const Error e = thrown([&] { decode(half); });
  CHECK(e.text().starts_with("i is a damaged JPEG image: "));
  CHECK(e.hint() == "replace the file, skip bad images, or tolerate_warnings");
  ImageDecoder d;
  const Decoded some = decode(half, {.tolerate_warnings = true}, &d);
  CHECK(d.warned() == 1);
  const Decoded all = decode(whole, {.tolerate_warnings = true}, &d);
  CHECK(d.warned() == 1);
  CHECK(std::memcmp(some.values.data(), all.values.data(), 64 * 3 * 16) == 0);  // the upper part is there
}

TEST_CASE("image: too large is refused before anything is taken for it") {
  std::string png = png_of(picture(2, 2, 3));
  png[16] = 0x7f;  // the width
  CHECK(thrown([&] { decode(png); }).text().find("more than the 67108864 allowed") != std::string::npos);
  std::string jpeg = jpeg_of(picture(8, 8, 3));
  const size_t frame = jpeg.find("\xff\xc0");
  for (size_t i = 5; i < 9; ++i) jpeg[frame + i] = char(0xff);
  CHECK(thrown([&] { decode(jpeg); }).code() == Code::kFormat);
  CHECK(thrown([&] { decode(jpeg_of(picture(20, 20, 3)), {.max_pixels = 399}); }).code() == Code::kFormat);
  std::vector<uint8_t> small(10);
  ImageDecoder d;
  CHECK(thrown([&] { d.decode(bytes_of(jpeg_of(picture(8, 8, 3))), small, {}, "i"); }).code() == Code::kShape);
  CHECK(thrown([&] { decode(jpeg_of(picture(8, 8, 3)), {.channels = 2}); }).code() == Code::kUsage);
}

TEST_CASE("image: a JPEG of endless scans is refused") {
  const std::string whole = jpeg_of(picture(16, 16, 3), {.progressive = true});
  const size_t last = whole.rfind("\xff\xda");  // the last scan again and again
  const std::string scan = whole.substr(last, whole.size() - 2 - last);
  std::string many = whole.substr(0, whole.size() - 2);
  for (int i = 0; i < 200; ++i) many += scan;
  many += "\xff\xd9";
  const Error e = thrown([&] { decode(many, {.tolerate_warnings = true}); });
  CHECK(e.text().find("more than 100 scans") != std::string::npos);
}
