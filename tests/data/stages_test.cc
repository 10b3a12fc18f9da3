#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "data/running.h"
#include "io/npy.h"
#include "support.h"

using namespace millpond;
using namespace millpond::test;

namespace {
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("millpond_data_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
  std::filesystem::path path;
};
}  // namespace

TEST_CASE("rows of .npy files of every type are read as they are, in order and shuffled") {
  const Folder folder;
  for (const DType t :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool}) {
    const Tensor x = random_floats({101, 3, 5}, 9), values = [&] {
      Tensor scaled = x;
      for (float& v : scaled.values<float>()) v = v * 200;
      return scaled.astype(t);
    }();
    io::write_npy(folder / "x.npy", values);
    const Dataset d = Dataset::from_npy({folder / "x.npy"});
    CHECK(d.cardinality() == 101);
    CHECK(collect(d) == collect(Dataset::from_arrays(values)));
    CHECK(collect(d.shuffle({.seed = 3}).batch(7)) ==
          collect(Dataset::from_arrays(values).shuffle({.seed = 3}).batch(7)));
  }
}

TEST_CASE("a .npy file that becomes shorter while it is read is told with its place, and nothing crashes") {
  const Folder folder;
  io::write_npy(folder / "x.npy", random_floats({1000, 100}, 1));
  const Dataset d = Dataset::from_npy({folder / "x.npy"}).batch(10);
  DatasetIterator it = d.iterator();
  Element e;
  it.next(e);
  std::filesystem::resize_file(folder / "x.npy", 100000);
  const std::string text = message_of([&] {
    while (it.next(e)) {
    }
  });
  CHECK(text.find("x.npy") != std::string::npos);
  CHECK(text.find("shorter") != std::string::npos);
  CHECK(text.find("stage") != std::string::npos);
  CHECK_FALSE(it.next(e));
}

TEST_CASE("a map's random numbers belong to the element, not to the thread") {
  const auto f = [](Element& e, Buffers& b) {
    Tensor t = b.tensor(DType::kInt64, {});
    t.values<int64_t>()[0] = int64_t(b.seed() >> 8);
    e[0] = t;
  };
  const Dataset one = Dataset::range(200).map(f), many = Dataset::range(200).map(f, {.parallel = 4});
  CHECK(collect(one) == collect(many));
  const std::vector<double> all = numbers(one);
  CHECK(std::set<double>(all.begin(), all.end()).size() == 200);
  DatasetIterator it = many.iterator();
  it.rewind(1);
  Element e;
  it.next(e);
  CHECK(e[0].at(0) != all[0]);
}

TEST_CASE("an unordered map gives every element once") {
  const Dataset d = Dataset::range(300).map(
      [](Element& e, Buffers&) {
        if (int64_t(e[0].at(0)) % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      },
      {.parallel = 3, .ordered = false});
  std::vector<double> all = numbers(d);
  std::ranges::sort(all);
  REQUIRE(all.size() == 300);
  for (size_t i = 0; i < 300; ++i) CHECK(all[i] == double(i));
  DatasetIterator it = d.iterator();
  CHECK(message_of([&] { it.save(); }).find("in the order in which they are ready") != std::string::npos);
}

TEST_CASE("elements whose function fails are left out and counted when asked") {
  const auto f = [](Element& e) {
    if (int64_t(e[0].at(0)) % 3 == 1) throw Error(Code::kValue, "no");
  };
  for (const int64_t threads : {int64_t{1}, int64_t{3}}) {
    const Dataset d = Dataset::range(10).map(f, {.parallel = threads, .ignore_errors = true});
    CHECK(numbers(d) == std::vector<double>{0, 2, 3, 5, 6, 8, 9});
    CHECK(d.explain().find("3 left out") != std::string::npos);
  }
}

TEST_CASE("a cache asks its input once, spills what does not fit, and gives the same each time") {
  for (const CacheOptions& o : {CacheOptions{}, CacheOptions{.memory = 20_KiB}, CacheOptions{.file_only = true}}) {
    std::atomic<int> made = 0;
    const Dataset d = Dataset::range(100)
                          .map([&made](Element& e, Buffers& b) {
                            ++made;
                            Tensor t = b.tensor(DType::kInt64, {100});
                            std::ranges::fill(t.values<int64_t>(), e[0].values<int64_t>()[0]);
                            e[0] = t;
                          })
                          .cache(o)
                          .with_options({.budget = 2_MiB});
    DatasetIterator it = d.iterator();
    for (int epoch = 0; epoch < 4; ++epoch) {
      it.rewind(epoch);
      int64_t n = 0;
      for (Element e; it.next(e); ++n) {
        REQUIRE(e[0].shape() == Shape{100});
        CHECK(e[0].at(99) == double(n));
      }
      CHECK(n == 100);
    }
    CHECK(made == 100);
    const std::string text = it.explain();
    CHECK(text.find(o.memory.value || o.file_only ? "in a file" : "all in memory") != std::string::npos);
    if (o.memory.value) CHECK(it.peak() < 64_KiB);
  }
}

TEST_CASE("a round of a cache that was not finished is forgotten") {
  int made = 0;
  const Dataset d = Dataset::range(10).map([&made](Element&) { ++made; }).cache();
  DatasetIterator it = d.iterator();
  Element e;
  for (int i = 0; i < 4; ++i) it.next(e);
  it.rewind(1);
  int n = 0;
  while (it.next(e)) ++n;
  CHECK(n == 10);
  it.rewind(2);
  while (it.next(e)) ++n;
  CHECK(n == 20);
  CHECK(made == 14);
}

TEST_CASE("padded batches are filled up to the largest, or to the shape that is asked for") {
  const Dataset d = Dataset::range(1, 5).map([](Element& e, Buffers& b) {
    const int64_t n = e[0].values<int64_t>()[0];
    Tensor t = b.tensor(DType::kFloat32, {n, 2});
    std::ranges::fill(t.values<float>(), float(n));
    e[0] = t;
  });
  const std::vector<Item> two = collect(d.batch(2, {.padded = true, .padding_value = -1}));
  REQUIRE(two.size() == 2);
  CHECK(two[0][0].shape == std::vector<int64_t>{2, 2, 2});
  CHECK(two[1][0].shape == std::vector<int64_t>{2, 4, 2});
  for (const Element& e : d.batch(2, {.padded = true, .padding_value = -1}).take(1)) {
    CHECK(e[0].at(0) == 1);
    CHECK(e[0].at(2) == -1);
    CHECK(e[0].at(7) == 2);
  }
  for (const Element& e : d.batch(4, {.padded = true, .padded_shapes = {{6, -1}}}))
    CHECK(e[0].shape() == Shape{4, 6, 2});
  CHECK(message_of([&] {
          collect(d.batch(4, {.padded = true, .padded_shapes = {{3, -1}}}));
        }).find("more than the 3") != std::string::npos);
  CHECK(message_of([&] { collect(d.batch(4)); }).find("padded = true") != std::string::npos);
}

TEST_CASE("tuning raises the threads of a slow map, within the budget, and changes nothing in what comes out") {
  const auto slow = [](Element&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  const Dataset d = Dataset::range(400).map(slow, {.parallel = AUTOTUNE}).with_options({.budget = 4_MiB, .threads = 4});
  DatasetIterator it = d.iterator();
  int64_t n = 0;
  for (Element e; it.next(e); ++n) CHECK(e[0].at(0) == double(n));
  CHECK(n == 400);
  const std::string text = it.explain();
  CAPTURE(text);
  CHECK(text.find("of 4, ") != std::string::npos);
  CHECK(text.find("1 thread of 4") == std::string::npos);
  CHECK(it.waited_on() == "map");
}

TEST_CASE("prefetch says in explain whether it works ahead: small batches of rows in memory are gathered on demand") {
  const std::string on_demand = "nothing to do ahead: rows in memory, gathered sooner than handed over";
  const Tensor narrow(DType::kFloat32, {1000, 10}), wide(DType::kFloat32, {1000, 1000});
  const auto nothing = [](Element&) {};
  const Dataset rows = Dataset::from_arrays(narrow);
  for (const Dataset& d : {rows.batch(20), rows.shuffle({.seed = 1}).batch(20)}) {
    const int before = threads_now();
    DatasetIterator it = d.prefetch(AUTOTUNE).iterator();
    int64_t n = 0;
    for (Element e; it.next(e); ++n) CHECK(threads_now() == before);
    CHECK(n == 50);
    CHECK(it.explain().find(on_demand) != std::string::npos);
  }
  // Large batches, a function, or a number that was asked for: these are made ready by a thread, and the table tells how
  // many are and why. (It looks at the first sixteen once 50 ms have passed.)
  for (const auto& [d, depth] : {std::pair{Dataset::from_arrays(wide).batch(20), AUTOTUNE},
                                 {rows.map(nothing).batch(20), AUTOTUNE},
                                 {rows.batch(20), int64_t{3}}}) {
    const int before = threads_now();
    DatasetIterator it = d.prefetch(depth).iterator();
    int64_t n = 0;
    for (Element e; it.next(e); ++n) {
      CHECK(threads_now() > before);
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
    CHECK(n == 50);
    const std::string text = it.explain();
    CAPTURE(text);
    CHECK(text.find(on_demand) == std::string::npos);
    CHECK((text.find(" deep: ") != std::string::npos) == (depth == AUTOTUNE));
  }
}

TEST_CASE("a queue admits by bytes: large elements stay few") {
  const auto make = [] {
    return [i = 0](Element& e, Buffers& b) mutable {
      e.push_back(b.tensor(DType::kUInt8, {100 << 10}));
      return ++i <= 50;
    };
  };
  const Dataset d = Dataset::from_generator(make, {TensorSpec{DType::kUInt8, {100 << 10}}})
                        .prefetch(40, {.bytes = 350_KiB})
                        .with_options({.budget = 16_MiB});
  DatasetIterator it = d.iterator();
  Element e;
  it.next(e);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (const data::Stage* s : it.running().pool().stages())
    if (s->name == "prefetch") CHECK(Bytes{s->peak.load()} <= 350_KiB + 120_KiB);  // and the one in work
  int n = 1;
  while (it.next(e)) ++n;
  CHECK(n == 50);
}

TEST_CASE(
    "inner pipelines of interleave have stages of their own, in the budget of the outer one, and the order stays") {
  const auto inner = [](const Element& e) {
    const int64_t v = e[0].values<int64_t>()[0];
    return Dataset::range(v * 100, v * 100 + 40)
        .map(
            [](Element& f, Buffers& b) {
              Tensor t = b.tensor(DType::kInt64, {100});
              std::ranges::fill(t.values<int64_t>(), f[0].values<int64_t>()[0]);
              f[0] = t;
            },
            {.parallel = 2})
        .shuffle({.elements = 8, .seed = 5})
        .prefetch(2);
  };
  const Dataset plainly =
      Dataset::range(12).interleave(inner, {.cycle_length = 3, .block_length = 2}).with_options({.budget = 2_MiB});
  const Dataset ahead = Dataset::range(12)
                            .interleave(inner, {.cycle_length = 3, .block_length = 2, .parallel = true})
                            .prefetch(4)
                            .with_options({.budget = 2_MiB});
  const std::vector<Item> all = collect(plainly);
  CHECK(all.size() == 480);
  CHECK(collect(ahead) == all);
  CHECK(ahead.explain().find("shuffle(8 elements)") != std::string::npos);
  DatasetIterator it = ahead.iterator();
  for (Element e; it.next(e);) {
  }
  CHECK(it.peak() <= 2_MiB);
}

TEST_CASE("map may write where it reads: neither the user's array nor a cache changes, in one thread or several") {
  for (const int64_t parallel : {int64_t{1}, int64_t{3}}) {
    Tensor x(DType::kFloat32, {6, 50});
    for (float& v : x.values<float>()) v = 255;
    const auto halve = [](Element& e) {
      for (float& v : e[0].values<float>()) v /= 255;
    };
    const Dataset arrays = Dataset::from_arrays(x).map(halve, {.parallel = parallel});
    const Dataset borrowed = Dataset::from_arrays(Tensor::view(x.data(), DType::kFloat32, x.shape()))
                                 .map(halve, {.parallel = parallel})
                                 .map(halve, {.parallel = parallel});
    const Dataset cached = Dataset::from_arrays(x).cache().map(halve, {.parallel = parallel});
    for (const auto& [d, wanted] : {std::pair{arrays, 1.0}, {borrowed, 1.0 / 255}, {cached, 1.0}}) {
      DatasetIterator it = d.iterator();
      for (int epoch = 0; epoch < 3; ++epoch) {
        Element e;
        int64_t count = 0;
        for (; it.next(e); ++count) CHECK(e[0].at(7) == doctest::Approx(wanted));
        CHECK(count == 6);
        it.rewind(epoch + 1);
      }
    }
    for (const float v : x.values<float>()) REQUIRE(v == 255);
  }
}

TEST_CASE("an error of a generator has the number of its element, batched or not") {
  const Dataset d = Dataset::from_generator(
      [] {
        return [](Element& e, Buffers& b) {
          if (b.index() == 70) throw std::runtime_error("broken");
          e.clear();
          e.push_back(b.tensor(DType::kFloat32, {3}));
          return true;
        };
      },
      {TensorSpec{DType::kFloat32, {3}}});
  for (const Dataset& all : {d, d.batch(32), d.map([](Element&) {}).batch(32), d.batch(32).prefetch(2)}) {
    const std::string said = message_of([&] { collect(all); });
    CHECK(said.find("failed at element 70: broken") != std::string::npos);
  }
}

TEST_CASE("a hint names an option that a user can give") {
  const Folder folder;
  {
    std::FILE* f = std::fopen((folder / "bad.csv").c_str(), "w");
    std::fputs("a,b\n1,2\n3\n", f);
    std::fclose(f);
  }
  CHECK(message_of([&] { collect(Dataset::from_csv(folder / "bad.csv")); }).find("skip_bad_rows") != std::string::npos);
}

TEST_CASE("a cache of small rows holds little more than the rows, and the system has all of it back afterwards") {
  constexpr int64_t kRows = 100'000, kWidth = 22;  // 8.8 MB
  const Dataset d = Dataset::from_generator(
                        [] {
                          return [](Element& e, Buffers& b) {
                            if (b.index() == kRows) return false;
                            e.clear();
                            e.push_back(b.tensor(DType::kFloat32, {kWidth}));
                            for (float& v : e[0].values<float>()) v = float(b.index());
                            return true;
                          };
                        },
                        {TensorSpec{DType::kFloat32, {kWidth}}})
                        .cache()
                        .with_options({.budget = 200_MiB});
  const Bytes before = *resident();
  {
    DatasetIterator it = d.iterator();
    Element e;
    for (int epoch = 0; epoch < 2; ++epoch) {
      int64_t count = 0;
      for (; it.next(e); ++count) REQUIRE(e[0].at(kWidth - 1) == double(count));
      CHECK(count == kRows);
      it.rewind(epoch + 1);
    }
    e.clear();
    CHECK(it.held() < 11_MiB);
    CHECK(*resident() - before < 14_MiB);
  }
  CHECK(*resident() - before < 4_MiB);
}
