// Sources that read files of other formats, and changes to images. The formats themselves are tested in formats/.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "base/format.h"
#include "data/formats/example.h"
#include "data/formats/helpers.h"
#include "data/formats/tfrecord.h"
#include "support.h"

using namespace millpond;
using namespace millpond::test;

namespace {
// A plain colour, so that any decoder gives (nearly) it back.
std::string jpeg(int height, int width, int value) {
  return data::jpeg_of({height, width, 3, std::vector<uint8_t>(size_t(height) * size_t(width) * 3, uint8_t(value))});
}
std::string words(const Tensor& t) { return {reinterpret_cast<const char*>(t.data()), size_t(t.size())}; }
}  // namespace

TEST_CASE("a CSV file becomes x and y, row by row and straight into batches") {
  const Scratch folder;
  std::string text = "a,b,c,class\n";
  for (int i = 0; i < 1000; ++i) text += format("{},{:.2f},{},{}\n", i, i * 0.25, -i, i % 3);
  const std::string file = folder.put("x.csv", text);
  const Dataset d = Dataset::from_csv(file, {.label = "class"});
  CHECK(to_string(d.element_spec()) == "(float32 [3], int64 [])");
  int64_t n = 0;
  for (const Element& e : d) {
    CHECK(e[0].at(0) == double(n));
    CHECK(e[0].at(1) == n * 0.25);
    CHECK(e[0].at(2) == double(-n));
    CHECK(e[1].at(0) == double(n % 3));
    ++n;
  }
  CHECK(n == 1000);
  const std::vector<Item> rows = collect(d);
  CHECK(collect(d.batch(7).unbatch()) == rows);
  CHECK(collect(d.skip(900)).size() == 100);
  CHECK(collect(d.repeat(2)).size() == 2000);
  for (const Element& e : Dataset::from_csv(file, {.columns = {"c", "a"}, .pack = false}).take(2).skip(1)) {
    CHECK(e.size() == 2);
    CHECK(e[0].dtype() == DType::kInt64);
    CHECK(e[0].at(0) == -1);
  }
  DatasetIterator it = d.shuffle({.bytes = 64_KiB, .seed = 1}).batch(32).with_options({.budget = 4_MiB}).iterator();
  Element e;
  for (int i = 0; i < 5; ++i) it.next(e);
  const Item next = [&] {
    DatasetIterator other =
        d.shuffle({.bytes = 64_KiB, .seed = 1}).batch(32).with_options({.budget = 4_MiB}).iterator();
    other.restore(it.save());
    Element f;
    other.next(f);
    return plain(f);
  }();
  it.next(e);
  CHECK(same(e, next));
}

TEST_CASE("bad CSV rows are refused with file and line, or left out and counted") {
  const Scratch folder;
  const std::string file = folder.put("bad.csv", "a,b\n1,2\n3\n4,5\n");
  const std::string text = message_of([&] { collect(Dataset::from_csv(file)); });
  CHECK(text.find("bad.csv") != std::string::npos);
  const Dataset d = Dataset::from_csv(file, {.skip_bad_rows = true});
  CHECK(collect(d).size() == 2);
  CHECK(d.explain().find("1 left out") != std::string::npos);
}

TEST_CASE("TFRecords come as bytes or as features, through several files") {
  const Scratch folder;
  for (int f = 0; f < 2; ++f) {
    data::RecordWriter writer(folder.path(format("{}.tfrecord", f)));
    data::ExampleWriter example;
    for (int i = 0; i < 5; ++i) {
      const float x[3] = {float(f * 5 + i), 0.5f, -1.f};
      const int64_t y = i % 2;
      example.clear();
      example.add("x", std::span<const float>(x));
      example.add("y", std::span<const int64_t>(&y, 1));
      example.add("name", std::string_view("row" + std::to_string(i)));
      writer.write(example.finish());
    }
    writer.close();
  }
  const std::vector<std::string> files{folder.path("0.tfrecord"), folder.path("1.tfrecord")};
  CHECK(collect(Dataset::from_tfrecord(files)).size() == 10);
  const Dataset d = Dataset::from_tfrecord(
      files, {.features = {{"x", DType::kFloat32, {3}}, {"y", DType::kInt32, {}}, {"name", DType::kUInt8, {}}}});
  int64_t n = 0;
  for (const Element& e : d) {
    CHECK(e[0].at(0) == double(n));
    CHECK(e[1].at(0) == double(n % 5 % 2));
    CHECK(words(e[2]) == "row" + std::to_string(n % 5));
    ++n;
  }
  CHECK(n == 10);
  const std::string missing =
      message_of([&] { collect(Dataset::from_tfrecord(files, {.features = {{"z", DType::kFloat32, {}}}})); });
  CHECK(missing.find("0.tfrecord, record 0: feature \"z\" is missing") != std::string::npos);
  const std::string shape =
      message_of([&] { collect(Dataset::from_tfrecord(files, {.features = {{"x", DType::kFloat32, {4}}}})); });
  CHECK(shape.find("has 3 values") != std::string::npos);
}

TEST_CASE("lines of text, one after the other through the files") {
  const Scratch folder;
  const Dataset d = Dataset::from_text({folder.put("a.txt", "one\ntwo\r\n"), folder.put("b.txt", "\nthree")});
  std::vector<std::string> lines;
  for (const Element& e : d) lines.push_back(words(e[0]));
  CHECK(lines == std::vector<std::string>{"one", "two", "", "three"});
}

TEST_CASE("a row, record or line that is too long is refused with the option that allows it, and then allowed by it") {
  const Scratch folder;
  const std::string csv = folder.put("long.csv", "a,b\n1,2\n3," + std::string(9000, '0') + "4\n"),
                    lines = folder.put("long.txt", "one\n" + std::string(3 << 20, 'x') + "\n"),
                    records = folder.path("long.tfrecord");
  data::RecordWriter writer(records);
  writer.write(std::string(5000, 'r'));
  writer.close();
  const auto refusal = [](const Dataset& d) { return message_of([&] { collect(d); }); };
  CHECK(message_of([&] { collect(Dataset::from_csv(csv, {.buffer = 4_KiB})); }).find("option buffer") !=
        std::string::npos);
  CHECK(refusal(Dataset::from_text({lines})).find("give the option max_line more bytes") != std::string::npos);
  CHECK(refusal(Dataset::from_tfrecord({records}, {.max_record = 4_KiB})).find("give the option max_record") !=
        std::string::npos);
  CHECK(collect(Dataset::from_csv(csv, {.buffer = 16_KiB})).size() == 2);
  CHECK(collect(Dataset::from_text({lines}, {.max_line = 3_MiB})).size() == 2);
  CHECK(collect(Dataset::from_tfrecord({records}, {.max_record = 5000_B})).size() == 1);
  CHECK(message_of([&] { return Dataset::from_text({lines}, {.max_line = 0_B}); }).find("max_line is 0 B") !=
        std::string::npos);
}

TEST_CASE("a folder of images: classes from its folders, resized, shuffled by name, bad ones told or left out") {
  const Scratch folder;
  for (int i = 0; i < 12; ++i)
    folder.put(format("{}/{}.jpg", i % 2 ? "dark" : "bright", i), jpeg(20 + i, 30, i % 2 ? 20 + i : 200 + i));
  const Dataset d = Dataset::from_image_folder(folder.path(""), {.height = 16, .width = 24, .parallel = 2});
  CHECK(d.class_names() == std::vector<std::string>{"bright", "dark"});
  CHECK(d.batch(3).class_names().size() == 2);
  CHECK(d.cardinality() == 12);
  CHECK(to_string(d.element_spec()) == "(float32 [16, 24, 3], int32 [])");
  for (const Element& e : d) CHECK((e[0].at(0) > 128) == (e[1].at(0) == 0));
  const Dataset shuffled = d.shuffle({.seed = 4});
  std::set<double> seen;
  for (const Element& e : shuffled) seen.insert(std::round(e[0].at(0)));
  CHECK(seen.size() == 12);
  CHECK(shuffled.explain().find("permuted numbers") != std::string::npos);
  CHECK(collect(shuffled) != collect(d));
  folder.put("dark/99.jpg", "this is no image");
  const std::string text = message_of([&] { collect(Dataset::from_image_folder(folder.path(""))); });
  CHECK(text.find("99.jpg") != std::string::npos);
  CHECK(collect(Dataset::from_image_folder(folder.path(""), {.skip_bad_images = true})).size() == 12);
}

TEST_CASE("augmentation follows seed, epoch and place, not threads") {
  Tensor x(DType::kUInt8, {40, 12, 10, 3});
  Random r(3);
  for (uint8_t& v : x.values<uint8_t>()) v = uint8_t(r.below(256));
  const auto make = [&](int64_t parallel, uint64_t seed) {
    return Dataset::from_arrays(x).augment({.flip_horizontal = true,
                                            .flip_vertical = true,
                                            .crop_height = 8,
                                            .crop_width = 8,
                                            .rotation = 0.1,
                                            .brightness = 0.2,
                                            .resize_height = 6,
                                            .resize_width = 7,
                                            .parallel = parallel,
                                            .seed = seed});
  };
  CHECK(to_string(make(1, 1).element_spec()) == "(uint8 [6, 7, 3])");
  CHECK(collect(make(1, 1)) == collect(make(3, 1)));
  CHECK(collect(make(1, 1)) != collect(make(1, 2)));
  DatasetIterator it = make(2, 1).iterator();
  Element a, b;
  it.next(a);
  it.rewind(1);
  it.next(b);
  CHECK_FALSE(plain(a) == plain(b));
  // Flips alone: each image is the original or its mirror, and both occur.
  int mirrored = 0;
  int64_t i = 0;
  for (const Element& e : Dataset::from_arrays(x).augment({.flip_horizontal = true, .seed = 9})) {
    const uint8_t first = e[0].values<uint8_t>()[0], left = x.rows(i, i + 1).values<uint8_t>()[0],
                  right = x.rows(i, i + 1).values<uint8_t>()[27];
    CHECK((first == left || first == right));
    mirrored += first == right && left != right;
    ++i;
  }
  CHECK(mirrored > 8);
  CHECK(mirrored < 32);
  CHECK(message_of([&] { return Dataset::from_arrays(x).batch(2).augment({}); }).find("augment comes before batch") !=
        std::string::npos);
}
