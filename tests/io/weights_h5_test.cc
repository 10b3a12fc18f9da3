// What needs no Keras; keras_test.py has the rest.
#include "io/weights_h5.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/segment.h"
#include "io/scratch.h"

using namespace millpond;
using namespace millpond::io;

namespace {
Tensor filled(DType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < t.bytes().value; ++i)
    t.data()[i] = dtype == DType::kBool ? std::byte(i & 1) : std::byte(i * 11 + 3);
  return t;
}
bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), size_t(a.bytes().value)) == 0;
}
template <class F>
std::string refusal(F f, Code code) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.text() + (e.hint().empty() ? "" : "; " + e.hint());
  }
  return "not refused";
}
[[maybe_unused]] int64_t anonymous_bytes() {
  long pages = 0, shared = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  REQUIRE(fscanf(f, "%*d %ld %ld", &pages, &shared) == 2);
  fclose(f);
  return (pages - shared) * 4096;
}
}  // namespace

TEST_CASE("weights: what is written is read back bit by bit, in every type and rank") {
  Scratch dir;
  const std::string file = dir.path("a.weights.h5");
  std::vector<WeightEntry> entries;
  int n = 0;
  for (DType dtype : kAllDTypes)
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{0}, Shape{7}, Shape{3, 0, 2}, Shape{2, 3, 5}, Shape{1, 1, 1, 1, 1, 1, 1, 2}})
      entries.push_back({"layers/dense_" + std::to_string(n++) + "/vars/0", filled(dtype, shape)});
  entries.push_back({"vars/0", filled(DType::kFloat32, {300, 300})});
  write_weights(file, entries);
  const auto all = read_weights(file, "test/weights");
  CHECK(all.size() == entries.size());
  for (const WeightEntry& e : entries) {
    CAPTURE(e.path);
    REQUIRE(all.count(e.path) == 1);
    CHECK(same(all.at(e.path), e.tensor));
  }
  CHECK(dir.files() == 1);
}

TEST_CASE("weights: names of objects come back, also of objects without weights and of the model itself") {
  Scratch dir;
  const std::string file = dir.path("b.weights.h5");
  const std::vector<WeightEntry> entries{{"layers/dense/vars/0", filled(DType::kFloat32, {2})}};
  const std::vector<ObjectName> names{{"layers/dense", "hidden"}, {"layers/dropout", "dröpout"}, {"", "sequential"}};
  write_weights(file, entries, names);
  const WeightsReader r(file);
  CHECK(r.names() == std::map<std::string, std::string>{
                         {"", "sequential"}, {"layers/dense", "hidden"}, {"layers/dropout", "dröpout"}});
  CHECK(r.entries().size() == 1);
}

TEST_CASE("weights: entries are known before a value is read, and reading one charges only that one") {
  Scratch dir;
  const std::string file = dir.path("c.weights.h5");
  write_weights(
      file, std::vector<WeightEntry>{{"a", filled(DType::kFloat32, {1000, 100})}, {"b", filled(DType::kInt64, {3})}});
  const WeightsReader r(file);
  CHECK(r.entries().at("a").shape == Shape{1000, 100});
  CHECK(r.entries().at("b").dtype == DType::kInt64);
  const auto held = [] {
    Bytes sum;
    each_holding([&](const std::string& account, Bytes b) { sum += account == "test/weights" ? b : 0_B; });
    return sum;
  };
  CHECK(held() == 0_B);
  const Tensor b = r.read("b", "test/weights");
  CHECK(held() == 24_B);
}

TEST_CASE("weights: read_into fills memory that is there, and refuses another shape or type") {
  Scratch dir;
  const std::string file = dir.path("d.weights.h5");
  const Tensor value = filled(DType::kFloat32, {4, 3});
  write_weights(file, std::vector<WeightEntry>{{"layers/dense/vars/0", value}});
  const WeightsReader r(file);
  Tensor to(DType::kFloat32, {4, 3});
  r.read_into("layers/dense/vars/0", to);
  CHECK(same(to, value));
  Tensor shape(DType::kFloat32, {3, 4}), type(DType::kFloat64, {4, 3}), nothing;
  CHECK(refusal([&] { r.read_into("layers/dense/vars/0", shape); }, Code::kShape) ==
        "the weight \"layers/dense/vars/0\" of " + file +
            " is [4, 3], but [3, 4] is asked for; is this the file of another model?");
  CHECK(refusal([&] { r.read_into("layers/dense/vars/0", type); }, Code::kDType) ==
        "the weight \"layers/dense/vars/0\" of " + file + " is float32, but float64 is asked for; use read and astype");
  CHECK(refusal([&] { r.read_into("layers/dense/vars/0", nothing); }, Code::kShape) != "not refused");
  CHECK(refusal([&] { static_cast<void>(r.read("layers/dens/vars/0", "test/weights")); }, Code::kValue) ==
        file + " has no weight \"layers/dens/vars/0\"; the nearest of its 1 is \"layers/dense/vars/0\"");
}

TEST_CASE("weights: the same weights are the same file, byte for byte") {
  Scratch dir;
  const std::vector<WeightEntry> entries{{"layers/dense/vars/0", filled(DType::kFloat32, {40, 30})},
                                         {"layers/dense/vars/1", filled(DType::kBFloat16, {30})}};
  const std::vector<ObjectName> names{{"layers/dense", "hidden"}};
  write_weights(dir.path("e.weights.h5"), entries, names);
  const std::string first = dir.get("e.weights.h5");
  write_weights(dir.path("e.weights.h5"), entries, names);
  CHECK(dir.get("e.weights.h5") == first);
}

TEST_CASE("weights: a list that is no tree is refused and the old file stays") {
  Scratch dir;
  const std::string file = dir.put("f.weights.h5", "old");
  const Tensor t = filled(DType::kFloat32, {2});
  const auto said = [&](std::vector<WeightEntry> entries, std::vector<ObjectName> names = {}) {
    return refusal([&] { write_weights(file, entries, names); }, Code::kValue);
  };
  for (const char* bad : {"", "/a", "a/", "a//b", "a/./b", "..", "a/../b"})
    CHECK(said({{bad, t}}) ==
          "\"" + std::string(bad) +
              "\" is not the path of a weight; write names with a / between them, such as layers/dense/vars/0");
  CHECK(said({{"a", t}, {"a", t}}) == "the weight \"a\" was given twice");
  CHECK(said({{"a", t}, {"a/b", t}}) == "\"a/b\" lies inside the weight \"a\"");
  CHECK(said({{"a/b/c", t}, {"a/b", t}}) == "\"a/b/c\" lies inside the weight \"a/b\"");
  CHECK(said({{"a", Tensor()}}) == "the weight \"a\" holds nothing");
  CHECK(said({{"a/vars", t}}, {{"a", "name"}}) == "\"a/vars/\" lies inside the weight \"a/vars\"");
  CHECK(said({}, {{"a", "x"}, {"a", "y"}}) == "the object \"a\" was named twice");
  CHECK(dir.get("f.weights.h5") == "old");
  CHECK(dir.files() == 1);
}

TEST_CASE("weights: a file without weights can be written and read") {
  Scratch dir;
  write_weights(dir.path("g.weights.h5"), {});
  CHECK(read_weights(dir.path("g.weights.h5"), "test/weights").empty());
}

TEST_CASE("weights: what is no HDF5 file, and every beginning of one, is refused") {
  Scratch dir;
  CHECK(refusal([&] { WeightsReader(dir.path("absent")); }, Code::kFile).find("cannot be read: No such file") !=
        std::string::npos);
  CHECK(refusal([&] { WeightsReader(dir.path(".")); }, Code::kFile).ends_with("is not a plain file"));
  for (const char* text : {"", "not HDF5", "\x89HDF\r\n\x1a\n"})
    CHECK(refusal([&] { WeightsReader(dir.put("h", text)); }, Code::kFormat).find("expected an HDF5 file") !=
          std::string::npos);
  write_weights(dir.path("i"), std::vector<WeightEntry>{{"layers/dense/vars/0", filled(DType::kFloat32, {9})},
                                                        {"layers/dense/vars/1", filled(DType::kFloat16, {5})}});
  const std::string whole = dir.get("i");
  for (size_t n = 0; n < whole.size(); n += 13)
    CHECK(refusal([&] { read_weights(dir.put("j", whole.substr(0, n)), "test/weights"); }, Code::kFormat) !=
          "not refused");
}

#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed
TEST_CASE(
    "weights: a thousand files opened, read and closed, and fifty written, take no more memory than the first ten") {
  Scratch dir;
  std::vector<WeightEntry> entries;
  for (int i = 0; i < 20; ++i)
    entries.push_back({"layers/dense_" + std::to_string(i) + "/vars/0", filled(DType::kFloat32, {10, 10})});
  const auto round = [&](int i) {
    if (i % 20 == 0) write_weights(dir.path("k"), entries);
    CHECK(read_weights(dir.path("k"), "test/weights").size() == entries.size());
  };
  for (int i = 0; i < 10; ++i) round(i);
  const int64_t before = anonymous_bytes();
  for (int i = 0; i < 1000; ++i) round(i);
  CHECK(anonymous_bytes() - before <= 512 * 1024);
}
#endif

TEST_CASE("weights: several threads may read and write at once") {
  Scratch dir;
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::vector<WeightEntry> entries{{"a/b", filled(DType::kFloat32, {t + 1, 7})}};
      const std::string file = dir.path("l" + std::to_string(t));
      for (int i = 0; i < 20; ++i) {
        write_weights(file, entries);
        const WeightsReader r(file);
        good += same(r.read("a/b", "test/weights"), entries[0].tensor);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(good == 80);
}

TEST_CASE("weights: a reader may be moved, and outlives the file's name") {
  Scratch dir;
  write_weights(dir.path("m"), std::vector<WeightEntry>{{"a", filled(DType::kFloat32, {3})}});
  WeightsReader a(dir.path("m"));
  WeightsReader b = std::move(a);
  unlink(dir.path("m").c_str());
  CHECK(same(b.read("a", "test/weights"), filled(DType::kFloat32, {3})));
}
