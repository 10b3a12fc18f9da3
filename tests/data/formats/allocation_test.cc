// No reader allocates for a row, record, line or image once its buffers fit. Counts operator new of the whole program;
// what libjpeg, libpng and zlib take with malloc is theirs and not counted.
#include <atomic>
#include <cstdlib>
#include <new>

#include "base/format.h"
#include "data/formats/augment.h"
#include "data/formats/csv.h"
#include "data/formats/example.h"
#include "data/formats/helpers.h"
#include "data/formats/image.h"
#include "data/formats/npz.h"
#include "data/formats/text.h"
#include "data/formats/tfrecord.h"

namespace {
std::atomic<int64_t> allocations{0};
}
void* operator new(size_t n) {
  ++allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

using namespace millpond;
using namespace millpond::data;

namespace {
// What the second of two runs allocates.
int64_t steady(const std::function<void()>& f) {
  f();
  const int64_t before = allocations;
  f();
  return allocations - before;
}
}  // namespace

TEST_CASE("allocations: none for rows of CSV, quotes and skipped ones among them") {
  std::string text = "a,b,c\n";
  for (int i = 0; i < 20000; ++i)
    text += i % 7 == 3 ? "x,bad,\n" : format("{},\"{}\",\"say \"\"{}\"\"\"\n", i * 0.25, i, i);
  for (bool packed : {false, true}) {
    const std::string bytes = packed ? deflated(text, 31) : text;
    CsvReader r(text_source(bytes), {.types = {{"a", CsvType::kFloat32}, {"b", CsvType::kInt64}, {"c", CsvType::kText}},
                                     .on_bad = OnBad::kSkip,
                                     .compression = packed ? Compression::kGzip : Compression::kNone,
                                     .buffer = Bytes{8192}});
    float a[100];
    int64_t b[100];
    std::string_view c[100];
    const CsvSlot slots[] = {{a, 4}, {b, 8}, {c, 16}};
    int64_t rows = 0;
    CHECK(steady([&] {
            for (int i = 0; i < 50; ++i) rows += r.read(100, slots);
          }) == 0);
    CHECK(rows > 5000);
    CHECK(r.skipped().count > 500);
  }
}

TEST_CASE("allocations: none for records, examples and lines") {
  std::string file, text;
  Scratch dir;
  RecordWriter w(dir.path("r"));
  ExampleWriter e;
  for (int i = 0; i < 2000; ++i) {
    const float f[] = {float(i), 2};
    const int64_t n[] = {i, -i};
    e.clear();
    e.add("x", f);
    e.add("y", n);
    e.add("name", std::string(size_t(i % 100), 'n'));
    w.write(e.finish());
    text += std::string(size_t(i % 50), 't') + "\n";
  }
  w.close();
  RecordReader r(dir.path("r"), {.buffer = Bytes{16384}});
  Example example;
  LineReader lines(text_source(text), {.max_line = Bytes{100}});
  int64_t seen = 0;
  CHECK(steady([&] {
          std::span<const std::byte> record;
          std::string_view line;
          for (int i = 0; i < 1000; ++i) {
            REQUIRE(r.next(record));
            example.parse(record);
            seen += example.ints(*example.find("y"))[0] - int64_t(example.floats(*example.find("x"))[0]);
            REQUIRE(lines.next(line));
          }
        }) == 0);
  CHECK(seen == 0);
  CHECK(steady([&] {
          e.clear();
          e.add("name", "value");
          (void)e.finish();
        }) == 0);
}

TEST_CASE("allocations: none of our own for images and what is done to them") {
  const std::string jpeg = jpeg_of(picture(40, 50, 3)), png = png_of(picture(40, 50, 3));
  ImageDecoder d;
  Resizer r;
  std::vector<uint8_t> values(40 * 50 * 3), turned(values.size());
  std::vector<float> out(224 * 224 * 3);
  const ImageOptions o;
  CHECK(steady([&] {
          for (const std::string* file : {&jpeg, &png}) {
            d.decode(bytes_of(*file), values, o, "image");
            Image<uint8_t> image{values.data(), 40, 50, 3};
            Draws draws(1, 2);
            if (draws.coin()) flip_horizontal(image);
            brightness(image, float(draws.uniform(-20, 20)));
            rotate<uint8_t>(image, {turned.data(), 40, 50, 3}, draws.uniform(-0.2, 0.2));
            r.resize(random_crop(Image<const uint8_t>{turned.data(), 40, 50, 3}, 30, 30, draws),
                     {out.data(), 224, 224, 3});
          }
        }) == 0);
}
