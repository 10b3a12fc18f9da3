#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "data/budget.h"
#include "data/permutation.h"
#include "support.h"

using namespace millpond;
using namespace millpond::test;

TEST_CASE("a permutation visits every number once, differs by key, and moves neighbours apart") {
  for (const uint64_t n : {1, 2, 3, 5, 16, 17, 100, 1000, 4097}) {
    std::vector<int> seen(n);
    const data::Permutation p(n, 42);
    for (uint64_t i = 0; i < n; ++i) {
      REQUIRE(p(i) < n);
      ++seen[p(i)];
    }
    CHECK(std::ranges::all_of(seen, [](int v) { return v == 1; }));
  }
  // Each of the 24 orders of four comes up about as often as the others.
  std::map<std::vector<uint64_t>, int> orders;
  for (uint64_t key = 0; key < 24000; ++key) {
    const data::Permutation p(4, key);
    ++orders[{p(0), p(1), p(2), p(3)}];
  }
  CHECK(orders.size() == 24);
  for (const auto& [order, count] : orders) {
    CHECK(count > 800);
    CHECK(count < 1200);
  }
  // Where an element lands says nothing about where its neighbour does.
  const data::Permutation p(100000, 7);
  double sum = 0;
  for (uint64_t i = 0; i + 1 < 100000; ++i) sum += std::abs(double(p(i)) - double(p(i + 1)));
  CHECK(sum / 99999 == doctest::Approx(100000 / 3.0).epsilon(0.02));
}

TEST_CASE(
    "the budget is divided: those that name their bytes get them, the others share, nobody gets less than an element") {
  using data::Claim;
  const auto claim = [](const char* name, int64_t working, bool holds, int64_t least, int64_t ask) {
    return Claim{name, Bytes{working}, holds, Bytes{least}, Bytes{ask}};
  };
  std::vector<Claim> claims{claim("source", 10, false, 0, 0), claim("shuffle", 0, true, 10, 500),
                            claim("prefetch", 0, true, 50, 0), claim("map", 40, true, 20, 0)};
  std::vector<Bytes> c = data::divide(Bytes{1000}, claims, true);
  CHECK(c[0] == Bytes{0});
  CHECK(c[1] == Bytes{500});
  CHECK(c[2] == Bytes{225});
  CHECK(c[3] == Bytes{225});
  claims[1].ask = Bytes{5000};
  c = data::divide(Bytes{1000}, claims, true);
  CHECK(c[1] + c[2] + c[3] <= Bytes{950});
  CHECK(c[1] >= Bytes{800});
  CHECK(c[2] >= Bytes{50});
  const std::string refusal = message_of([&] { data::divide(Bytes{100}, claims, true); });
  CHECK(refusal.find("needs at least 130 B, but its budget is 100 B (30 B short)") != std::string::npos);
  CHECK(refusal.find("prefetch") != std::string::npos);
  // Any claims: ceilings and working memory together stay within the budget.
  Random r(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<Claim> some;
    int64_t need = 0;
    for (uint64_t k = 0, n = 1 + r.below(6); k < n; ++k) {
      some.push_back(
          claim("s", int64_t(r.below(100)), r.below(2), int64_t(r.below(50)), r.below(2) ? int64_t(r.below(2000)) : 0));
      need += some.back().working.value + (some.back().holds ? some.back().least.value : 0);
    }
    const Bytes budget{need + int64_t(r.below(1000))};
    const std::vector<Bytes> given = data::divide(budget, some, true);
    Bytes sum;
    for (size_t k = 0; k < some.size(); ++k) {
      sum += some[k].working + given[k];
      if (some[k].holds) CHECK(given[k] >= some[k].least);
    }
    CHECK(sum <= budget);
  }
}

TEST_CASE("what a dataset looks like is known without reading it") {
  const Tensor x = random_floats({10, 4, 3}, 1);
  const Tensor y(DType::kInt32, {10});
  const Dataset d = Dataset::from_arrays(x, y);
  CHECK(to_string(d.element_spec()) == "(float32 [4, 3], int32 [])");
  CHECK(d.cardinality() == 10);
  CHECK(to_string(d.batch(4).element_spec()) == "(float32 [any, 4, 3], int32 [any])");
  CHECK(to_string(d.batch(4, {.drop_remainder = true}).element_spec()) == "(float32 [4, 4, 3], int32 [4])");
  CHECK(to_string(d.batch(5).element_spec()) == "(float32 [5, 4, 3], int32 [5])");
  CHECK(d.batch(4).cardinality() == 3);
  CHECK(d.repeat().cardinality() == INFINITE);
  CHECK(d.repeat(3).cardinality() == 30);
  CHECK(d.filter([](const Element&) { return true; }).cardinality() == UNKNOWN);
  CHECK(d.shard(3, 1).cardinality() == 3);
  CHECK(d.enumerate().element_spec()[0] == TensorSpec{DType::kInt64, {}});
  CHECK_FALSE(d.map([](Element&) {}).element_spec().known);
  CHECK(to_string(d.map([](Element&) {}).element_spec()) == "unknown");
  CHECK(d.map([](Element&) {}, {.spec = d.element_spec()}).element_spec() == d.element_spec());
  CHECK(Dataset::zip({d, Dataset::range(7)}).cardinality() == 7);
  CHECK(d.concatenate(d).cardinality() == 20);
  CHECK(d.window(4, {.shift = 2, .drop_remainder = true}).cardinality() == 4);
}

TEST_CASE("a plain loop, a look at the first element, and arrays that are not copied") {
  const Tensor x = random_floats({6, 2}, 3);
  const Dataset d = Dataset::from_arrays(x);
  int64_t i = 0;
  for (const Element& e : d) {
    CHECK(e[0].data() == x.data() + i * 8);
    ++i;
  }
  CHECK(i == 6);
  for (const Element& e : d.take(1)) CHECK(e[0].at(1) == x.at(1));
  CHECK(numbers(Dataset::range(2, 11, 3)) == std::vector<double>{2, 5, 8});
  CHECK(numbers(Dataset::range(3, 0, -2)) == std::vector<double>{3, 1});
  CHECK(numbers(Dataset::from_range(std::vector<float>{1.5f, 2.5f})) == std::vector<double>{1.5, 2.5});
  CHECK(numbers(Dataset::from_range(std::views::iota(0, 4) | std::views::transform([](int v) { return v * v; }))) ==
        std::vector<double>{0, 1, 4, 9});
}

TEST_CASE("an element that is kept outlives the pipeline it came from") {
  Element kept;
  {
    const Dataset d = Dataset::range(100).batch(10).prefetch(3);
    DatasetIterator it = d.iterator();
    for (int i = 0; i < 4; ++i) it.next(kept);
  }
  CHECK(kept[0].at(0) == 30);
  CHECK(kept[0].at(9) == 39);
}

TEST_CASE(
    "shuffled rows of arrays: all of them once, another order each epoch, the same for the same seed, and nothing "
    "held") {
  const Tensor x = [] {
    Tensor t(DType::kInt32, {1000});
    std::iota(t.values<int32_t>().begin(), t.values<int32_t>().end(), 0);
    return t;
  }();
  const Dataset d = Dataset::from_arrays(x).shuffle({.seed = 5});
  DatasetIterator it = d.iterator();
  std::vector<std::vector<double>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    it.rewind(epoch);
    std::vector<double> order;
    for (Element e; it.next(e);) order.push_back(e[0].at(0));
    std::vector<double> sorted = order;
    std::ranges::sort(sorted);
    for (size_t i = 0; i < 1000; ++i) REQUIRE(sorted[i] == double(i));
    epochs.push_back(order);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
  CHECK(numbers(Dataset::from_arrays(x).shuffle({.seed = 5})) == epochs[0]);
  CHECK(numbers(Dataset::from_arrays(x).shuffle({.seed = 6})) != epochs[0]);
  CHECK(it.peak() == Bytes{0});
}

TEST_CASE("a batch of shuffled rows takes the buffers of the batch and no more, and none anew after the first") {
  const Tensor x = random_floats({5000, 100}, 1);
  DatasetIterator it = Dataset::from_arrays(x).shuffle().batch(50).with_options({.budget = 1_MiB}).iterator();
  Element e;
  it.next(e);
  const Bytes after_first = it.peak();
  while (it.next(e)) {
  }
  CHECK(it.peak() == after_first);
  CHECK(after_first < Bytes{2 * 50 * 100 * 4 + 4096});
}

TEST_CASE("a budget that cannot hold one batch is refused before anything is read, with the table") {
  bool asked = false;
  const auto make = [&asked] {
    return [&asked](Element& e, Buffers& b) {
      asked = true;
      e.push_back(b.tensor(DType::kFloat32, {1000}));
      return true;
    };
  };
  const Dataset d = Dataset::from_generator(make, {TensorSpec{DType::kFloat32, {1000}}})
                        .batch(100)
                        .prefetch(2)
                        .with_options({.budget = 1_MiB});
  const std::string text = message_of([&] { d.iterator(); });
  CHECK(text.find("the data pipeline needs at least") != std::string::npos);
  CHECK(text.find("batch") != std::string::npos);
  CHECK(text.find("prefetch") != std::string::npos);
  CHECK_FALSE(asked);
}

TEST_CASE("explain tells every stage, its bytes, its bound and what was decided") {
  const Tensor x = random_floats({2000, 10}, 1);
  const Dataset d = Dataset::from_arrays(x)
                        .map([](Element&) {}, {.spec = ElementSpec{TensorSpec{DType::kFloat32, {10}}}})
                        .shuffle({.bytes = 64_KiB})
                        .batch(10)
                        .prefetch(2)
                        .with_options({.budget = 8_MiB});
  const std::string before = d.explain();
  CHECK(before.find("budget 8.00 MiB") != std::string::npos);
  for (const Element& e : d) CHECK(e.size() == 1);
  const std::string text = d.explain();
  for (const std::string word :
       {"arrays(2000 rows)", "map()", "shuffle(64.0 KiB)", "batch(10)", "prefetch(2)", "64.0 KiB", "buffers"}) {
    CAPTURE(word);
    CAPTURE(text);
    CHECK(text.find(word) != std::string::npos);
  }
}

TEST_CASE("mistakes are told with what to do") {
  const Tensor x = random_floats({6, 2}, 3), y = random_floats({5, 2}, 3);
  CHECK(message_of([&] { return Dataset::from_arrays(x, y); }) == "from_arrays: array 0 has 6 rows, but array 1 has 5");
  CHECK(message_of([&] { return Dataset::from_arrays(x).batch(0); }) ==
        "batch: 0 elements in a batch; give at least 1");
  CHECK(message_of([&] { return Dataset::from_arrays(x).shard(2, 2); }).find("part 2 of 2") != std::string::npos);
  CHECK(message_of([&] { return Dataset::range(5).unbatch(); }).find("no rows") != std::string::npos);
  CHECK(message_of([&] { return Dataset::range(5).concatenate(Dataset::from_arrays(x)); }).find("do not go together") !=
        std::string::npos);
  CHECK(message_of([&] { return Dataset::from_npy({"/nowhere/x.npy"}); }).find("/nowhere/x.npy cannot be read") !=
        std::string::npos);
}
