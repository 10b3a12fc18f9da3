// The end of pipelines: early, by an error, in the middle; and going on where one was.
#include <doctest/doctest.h>

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/segment.h"
#include "support.h"

using namespace millpond;
using namespace millpond::test;

namespace {
Bytes held_by_pipelines() {
  Bytes sum;
  each_holding([&](const std::string& account, Bytes b) {
    if (account.starts_with("pipeline/")) sum += b;
  });
  return sum;
}

Dataset busy(int64_t seed) {
  const Tensor x = random_floats({300, 20}, uint64_t(seed));
  return Dataset::from_arrays(x)
      .shuffle({.seed = uint64_t(seed)})
      .map([](Element& e, Buffers& b) { e.push_back(b.tensor(DType::kFloat32, {int64_t(10 + b.index() % 7)})); },
           {.parallel = 2})
      .map([](Element& e) { e.pop_back(); }, {.spec = ElementSpec{TensorSpec{DType::kFloat32, {20}}}})
      .shuffle({.elements = 40, .seed = 3})
      .interleave([](const Element& e) { return Dataset::from_arrays(e[0].reshaped({20, 1})).take(3); },
                  {.cycle_length = 3, .parallel = true})
      .batch(8)
      .cache({.memory = 20_KiB})
      .prefetch(AUTOTUNE)
      .with_options({.budget = 2_MiB});
}
}  // namespace

TEST_CASE("a pipeline that is dropped in the middle takes its threads, files and bytes with it") {
  const int threads = threads_now(), files = files_open();
  for (int taken = 0; taken < 120; taken += 7) {
    const Dataset d = busy(taken);
    DatasetIterator it = d.iterator();
    Element e;
    for (int i = 0; i < taken; ++i) it.next(e);
    if (taken % 2) e.clear();
  }
  CHECK(threads_now() == threads);
  CHECK(files_open() == files);
  CHECK(held_by_pipelines() == Bytes{0});
}

TEST_CASE("a thousand pipelines made and dropped leave no thread, no file, no byte") {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kMany = 100;
  constexpr bool kExact = false;
#else
  constexpr int kMany = 1000;
  constexpr bool kExact = true;
#endif
  const auto one = [](int i) {
    const Dataset d = busy(i);
    DatasetIterator it = d.iterator();
    Element e;
    for (int k = 0; k < i % 5; ++k) it.next(e);
  };
  for (int i = 0; i < 50; ++i) one(i);  // the allocator and the C library settle
  malloc_trim(0);
  const int threads = threads_now(), files = files_open();
  const auto before = totals();
  for (int i = 0; i < kMany; ++i) one(i);
  malloc_trim(0);
  const auto after = totals();
  CHECK(threads_now() == threads);
  CHECK(files_open() == files);
  CHECK(held_by_pipelines() == Bytes{0});
  REQUIRE(before);
  REQUIRE(after);
  if (kExact) CHECK(after->anonymous - before->anonymous <= 512_KiB);
}

TEST_CASE("an error in a worker comes out in its place, with stage and element, and everything ends") {
  const int threads = threads_now();
  for (const int64_t parallel : {int64_t{1}, int64_t{3}}) {
    const Dataset d = Dataset::range(100)
                          .map(
                              [](Element& e) {
                                if (e[0].at(0) == 42) throw std::runtime_error("this one is broken");
                              },
                              {.parallel = parallel, .name = "decode"})
                          .prefetch(2);
    DatasetIterator it = d.iterator();
    Element e;
    int64_t n = 0;
    std::string text;
    try {
      while (it.next(e)) CHECK(e[0].at(0) == double(n++));
    } catch (const Error& error) {
      text = error.what();
      CHECK(error.code() == Code::kValue);
    }
    CHECK(n == 42);
    CHECK(text.find("decode failed at element 42: this one is broken") != std::string::npos);
    CHECK(text.find("stage") != std::string::npos);
    CHECK_FALSE(it.next(e));
    it.rewind(1);  // and it may begin again
    CHECK(it.next(e));
  }
  CHECK(threads_now() == threads);
}

TEST_CASE("a pipeline can be dropped while its source sleeps") {
  const auto start = std::chrono::steady_clock::now();
  {
    std::atomic<int> asked = 0;
    const Dataset d = Dataset::from_generator([&asked] {
                        return [&asked](Element& e, Buffers& b) {
                          ++asked;
                          std::this_thread::sleep_for(std::chrono::milliseconds(50));
                          e.push_back(b.tensor(DType::kFloat32, {}));
                          return true;
                        };
                      })
                          .prefetch(100)
                          .map([](Element&) {}, {.parallel = 2})
                          .prefetch(100);
    DatasetIterator it = d.iterator();
    Element e;
    it.next(e);
    CHECK(asked >= 1);
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
}

TEST_CASE("a saved place gives the same remaining elements in another pipeline of the same making") {
  for (int taken = 0; taken < 60; taken += 11) {
    std::vector<Item> rest;
    std::string place;
    const auto make = [] {  // seeds are drawn anew each time; the saved ones count
      const Tensor x = random_floats({300, 20}, 5);
      return Dataset::from_arrays(x)
          .shuffle()
          .map(
              [](Element& e, Buffers& b) {
                Tensor t = b.tensor(DType::kInt64, {});
                t.values<int64_t>()[0] = int64_t(b.seed() >> 3);
                e.push_back(t);
              },
              {.parallel = 2})
          .shuffle({.elements = 30})
          .batch(5)
          .prefetch(3);
    };
    {
      DatasetIterator it = make().iterator();
      it.rewind(2);
      Element e;
      for (int i = 0; i < taken; ++i) it.next(e);
      place = it.save();
      while (it.next(e)) rest.push_back(plain(e));
    }
    DatasetIterator other = make().iterator();
    Element e;
    other.next(e);
    other.restore(place);
    CHECK(other.epoch() == 2);
    CHECK(other.elements() == taken);
    size_t n = 0;
    for (; other.next(e); ++n) {
      REQUIRE(n < rest.size());
      CHECK(same(e, rest[n]));
    }
    CHECK(n == rest.size());
  }
  DatasetIterator it = Dataset::range(5).iterator();
  CHECK(message_of([&] { it.restore("{}"); }).find("no saved place") != std::string::npos);
  CHECK(message_of([&] {
          it.restore(R"({"millpond_dataset":1,"epoch":0,"elements":2,"seeds":[],"chain":"other;"})");
        }).find("made in another way") != std::string::npos);
  CHECK(message_of([&] {
          it.restore(R"({"millpond_dataset":1,"epoch":-1,"elements":2,"seeds":[],"chain":"range(5);"})");
        }).find("epoch") != std::string::npos);
}

TEST_CASE("bytes that a user's function takes beyond the budget are refused with the stage, not waited for") {
  const Dataset d = Dataset::range(10)
                        .map([](Element& e, Buffers& b) { e[0] = b.tensor(DType::kUInt8, {8 << 20}); }, {.parallel = 2})
                        .prefetch(2)
                        .with_options({.budget = 4_MiB});
  const std::string text = message_of([&] { collect(d); });
  CHECK(text.find("budget of 4.00 MiB is too small: map asks for") != std::string::npos);
}

TEST_CASE("a function that needs much of the budget makes the others wait, not fail") {
  // Three workers of 1.5 MiB each and a queue: they do not fit side by side, one after the other they do.
  const Dataset d = Dataset::range(30)
                        .map([](Element& e, Buffers& b) { e[0] = b.tensor(DType::kUInt8, {3 << 19}); }, {.parallel = 3})
                        .prefetch(8)
                        .with_options({.budget = 6_MiB});
  DatasetIterator it = d.iterator();
  Element e;
  int n = 0;
  while (it.next(e)) ++n;
  CHECK(n == 30);
  CHECK(it.peak() <= 6_MiB);
}
