// How fast the format readers are on one thread: least of several passes over the same file, which lies in the page
// cache.
//   data_formats_bench [--folder DIR] [--only csv,tfrecord,jpeg,...]
// The files are made in DIR (a folder of its own below /tmp unless told) and used again.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>
// jpeglib.h wants stdio's types first.
#include <jpeglib.h>

#include "base/format.h"
#include "base/random.h"
#include "data/formats/augment.h"
#include "data/formats/csv.h"
#include "data/formats/example.h"
#include "data/formats/image.h"
#include "data/formats/npz.h"
#include "data/formats/text.h"
#include "data/formats/tfrecord.h"

using namespace millpond;
using namespace millpond::data;

namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string folder = "/tmp/millpond-data-formats", only;

// Prints the rate of the fastest of several passes and their spread; `f` returns what it read, which must be the same
// each time.
void report(const std::string& name, double amount, const char* unit, const std::function<double()>& f) {
  if (!only.empty() && name.find(only) == std::string::npos) return;
  const double wanted = f();
  double best = 1e9, worst = 0;
  const double end = now() + 2;
  int passes = 0;
  for (; passes < 5 || (now() < end && passes < 200); ++passes) {
    const double begin = now();
    const double got = f();
    const double took = now() - begin;
    if (!(got == wanted) && !(std::isnan(got) && std::isnan(wanted))) {
      std::fprintf(stderr, "%s: read %g, then %g\n", name.c_str(), wanted, got);
      std::exit(1);
    }
    best = std::min(best, took);
    worst = std::max(worst, took);
  }
  std::printf("%-28s %10.1f %-10s (worst %.1f, %d passes)\n", name.c_str(), amount / best, unit, amount / worst,
              passes);
  std::fflush(stdout);
}

bool missing(const std::string& file) { return access(file.c_str(), R_OK) != 0; }
double megabytes(const std::string& file) { return double(std::filesystem::file_size(file)) / 1e6; }
void save(const std::string& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

constexpr int kColumns = 20;
double csv_pass(const std::string& file, int columns, CsvType type) {
  CsvReader r(file, {.features = type});
  if (int(r.columns().size()) != columns) std::abort();
  std::vector<double> room(size_t(256 * columns));
  std::vector<CsvSlot> slots;
  const auto cell = int64_t(cell_size(type));
  for (int c = 0; c < columns; ++c)
    slots.push_back({reinterpret_cast<std::byte*>(room.data()) + cell * c, cell * columns});
  double sum = 0;
  int64_t rows = 0;
  while (const int64_t n = r.read(256, slots)) {
    rows += n;
    sum += type == CsvType::kFloat32 ? double(reinterpret_cast<float*>(room.data())[0])
           : type == CsvType::kInt64 ? double(reinterpret_cast<int64_t*>(room.data())[0])
                                     : room[0];
  }
  return sum + double(rows);
}

void csv() {
  struct Kind {
    const char* name;
    CsvType type;
    std::function<std::string(Random&)> cell;
  };
  for (const Kind& k :
       {Kind{"csv_6digits", CsvType::kFloat32, [](Random& r) { return format("{:.6f}", r.uniform()); }},
        Kind{"csv_repr", CsvType::kFloat32, [](Random& r) { return format("{}", r.normal()); }},
        Kind{"csv_repr_float64", CsvType::kFloat64, [](Random& r) { return format("{}", r.normal()); }},
        Kind{"csv_int", CsvType::kInt64, [](Random& r) { return format("{}", r.below(uint64_t(1) << r.below(40))); }},
        Kind{"csv_quoted", CsvType::kFloat32, [](Random& r) { return format("\"{:.6f}\"", r.uniform()); }}}) {
    const std::string file = folder + "/" + k.name + ".csv";
    if (missing(file)) {
      Random random(1);
      std::string text;
      for (int c = 0; c < kColumns; ++c) text += format("{}c{}", c ? "," : "", c);
      text += '\n';
      while (text.size() < 40'000'000)
        for (int c = 0; c < kColumns; ++c) (text += k.cell(random)) += c + 1 < kColumns ? ',' : '\n';
      save(file, text);
    }
    report(k.name, megabytes(file), "MB/s", [&] { return csv_pass(file, kColumns, k.type); });
  }
  const std::string file = folder + "/csv_6digits.csv";
  report("csv_2_of_20_columns", megabytes(file), "MB/s", [&] {
    CsvReader r(file, {.columns = {"c3", "c17"}});
    float x[256][2];
    const CsvSlot slots[] = {{&x[0][0], 8}, {&x[0][1], 8}};
    double sum = 0;
    while (const int64_t n = r.read(256, slots)) sum += double(x[0][1]) + double(n);
    return sum;
  });
}

void tfrecord() {
  for (const auto& [name, size] : {std::pair{"tfrecord_1KB", 1000}, {"tfrecord_100KB", 100000}})
    for (Compression how : {Compression::kNone, Compression::kGzip}) {
      const std::string file = folder + "/" + name + (how == Compression::kGzip ? ".gz" : "");
      const double amount = 60;
      if (missing(file)) {
        RecordWriter w(file, how);
        Random random(2);
        std::string record(size_t(size), 'x');
        for (double bytes = 0; bytes < amount * 1e6; bytes += size) {
          for (size_t i = 0; i < record.size(); i += 4) record[i] = char(random.next());
          w.write(record);
        }
        w.close();
      }
      report(std::string(name) + (how == Compression::kGzip ? "_gzip" : ""), amount, "MB/s", [&] {
        RecordReader r(file, {.compression = how});
        std::span<const std::byte> record;
        double sum = 0;
        while (r.next(record)) sum += double(uint8_t(record[0])) + 1;
        return sum;
      });
    }
  const std::string file = folder + "/examples";
  const int records = 50000;
  if (missing(file)) {
    RecordWriter w(file);
    ExampleWriter e;
    std::vector<float> x(100);
    for (int i = 0; i < records; ++i) {
      for (float& v : x) v = float(i) + v * 0.5f;
      const int64_t label[] = {i % 10};
      e.clear();
      e.add("x", x);
      e.add("label", label);
      e.add("name", "an example");
      w.write(e.finish());
    }
    w.close();
  }
  report("examples", records / 1e3, "1000/s", [&] {
    RecordReader r(file);
    Example e;
    std::span<const std::byte> record;
    double sum = 0;
    while (r.next(record)) {
      e.parse(record);
      sum += double(e.floats(*e.find("x"))[5]) + double(e.ints(*e.find("label"))[0]);
    }
    return sum;
  });
}

std::string jpeg_of(int height, int width, uint64_t seed) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = JDIMENSION(width);
  info.image_height = JDIMENSION(height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  jpeg_start_compress(&info, TRUE);
  Random random(seed);
  std::vector<uint8_t> row(size_t(width) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        row[size_t(3 * x + c)] =
            uint8_t(120 + 80 * std::sin(0.03 * x + c) * std::cos(0.02 * y) + double(random.below(30)));
    JSAMPROW p = row.data();
    jpeg_write_scanlines(&info, &p, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return out;
}

void images() {
  constexpr int kImages = 32, kHeight = 375, kWidth = 500;  // the usual size of ImageNet's
  std::filesystem::create_directories(folder + "/images/a");
  std::vector<std::string> files;
  for (int i = 0; i < kImages; ++i) {
    const std::string file = format("{}/images/a/{:03}.jpg", folder, i);
    if (missing(file)) save(file, jpeg_of(kHeight, kWidth, uint64_t(i)));
    files.emplace_back();
    read_file(file, files.back(), Bytes{1 << 24});
  }
  ImageDecoder d;
  Resizer r;
  std::vector<uint8_t> pixels(size_t(kHeight * kWidth * 3));
  std::vector<float> out(224 * 224 * 3);
  const auto pass = [&](int64_t at_least, bool augment) {
    double sum = 0;
    for (int i = 0; i < kImages; ++i) {
      const std::string& f = files[size_t(i)];
      const ImageSize size = d.decode(std::as_bytes(std::span(f.data(), f.size())), pixels,
                                      {.at_least_height = at_least, .at_least_width = at_least}, "image");
      Image<uint8_t> image{pixels.data(), size.height, size.width, 3};
      sum += pixels[1000];
      if (!augment) continue;
      Draws draws(1, uint64_t(i));
      r.resize(image, Image<float>{out.data(), 224, 224, 3});
      const Image<float> small{out.data(), 224, 224, 3};
      if (draws.coin()) flip_horizontal(small);
      brightness(small, float(draws.uniform(-25, 25)));
      sum += double(out[777]);
    }
    return sum;
  };
  report("jpeg_375x500", kImages, "images/s", [&] { return pass(0, false); });
  report("jpeg_375x500_half", kImages, "images/s", [&] { return pass(160, false); });
  report("jpeg_resize_flip_brightness", kImages, "images/s", [&] { return pass(0, true); });
  d.decode(std::as_bytes(std::span(files[0].data(), files[0].size())), pixels, {}, "image");
  const Image<const uint8_t> image{pixels.data(), kHeight, kWidth, 3};
  report("resize_375x500_to_224", 1, "images/s",
         [&] { return r.resize(image, Image<float>{out.data(), 224, 224, 3}), double(out[5000]); });
  std::vector<uint8_t> turned(pixels.size());
  report("rotate_375x500", 1, "images/s",
         [&] { return rotate<uint8_t>(image, {turned.data(), kHeight, kWidth, 3}, 0.3), double(turned[5000]); });
}

void text() {
  const std::string file = folder + "/csv_6digits.csv";
  report("text_lines", megabytes(file), "MB/s", [&] {
    LineReader r(file);
    std::string_view line;
    double sum = 0;
    while (r.next(line)) sum += double(line.size());
    return sum;
  });
}
}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--folder")) folder = argv[i + 1];
    if (!std::strcmp(argv[i], "--only")) only = argv[i + 1];
  }
  std::filesystem::create_directories(folder);
  try {
    csv();
    tfrecord();
    images();
    text();
  } catch (const Error& e) {
    return std::fprintf(stderr, "data_formats_bench: %s\n", e.what()), 1;
  }
}
