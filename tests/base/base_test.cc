#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "millpond/bytes.h"
#include "millpond/error.h"
#include "millpond/shape.h"

using namespace millpond;

namespace {
template <class F>
std::string refusal(F f, Code code) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "not refused";
}
}  // namespace

TEST_CASE("Bytes: print with three digits and units of 1024") {
  CHECK(to_string(0_B) == "0 B");
  CHECK(to_string(1023_B) == "1023 B");
  CHECK(to_string(1_KiB) == "1.00 KiB");
  CHECK(to_string(Bytes{1536}) == "1.50 KiB");
  CHECK(to_string(Bytes{10239}) == "10.0 KiB");
  CHECK(to_string(Bytes{102340}) == "99.9 KiB");
  CHECK(to_string(Bytes{102399}) == "100 KiB");
  CHECK(to_string(1_MiB - 1_B) == "1.00 MiB");
  CHECK(to_string(Bytes{1300000000}) == "1.21 GiB");
  CHECK(to_string(Bytes{-1536}) == "-1.50 KiB");
  CHECK(to_string(Bytes{-7}) == "-7 B");
  CHECK(to_string(Bytes{INT64_MAX}) == "8192 PiB");
  CHECK(to_string(Bytes{INT64_MIN}) == "-8192 PiB");
  CHECK(format("{:>10}|", 2_MiB) == "  2.00 MiB|");
}

TEST_CASE("Bytes: no amount prints as 1024 of a unit that has a larger one") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const std::string s = to_string(Bytes{int64_t(random() >> (1 + random() % 63))});
    CHECK_MESSAGE(!(s.starts_with("1024 ") && !s.ends_with("PiB")), s);
  }
}

TEST_CASE("Bytes: amounts are read back in every unit, 1000 and 1024 apart") {
  CHECK(parse_bytes("4096") == 4_KiB);
  CHECK(parse_bytes("64MiB") == 64_MiB);
  CHECK(parse_bytes("1.5 GiB") == 1_GiB + 512_MiB);
  CHECK(parse_bytes("2GB") == Bytes{2000000000});
  CHECK(parse_bytes("0") == 0_B);
  for (const char* bad : {"", "MiB", "12 parsecs", "-1", "-1MiB", "nan", "inf", "1e30", "1MiBs", "64 mib"})
    CHECK(refusal([&] { parse_bytes(bad); }, Code::kUsage) ==
          format("\"{}\" is not an amount of memory; write 64MiB, 1.5GiB, 2GB or a number of bytes", bad));
}

TEST_CASE("Bytes: rounding up gives the next multiple and leaves multiples alone") {
  CHECK(round_up(0_B, 64_B) == 0_B);
  CHECK(round_up(1_B, 64_B) == 64_B);
  CHECK(round_up(64_B, 64_B) == 64_B);
  CHECK(round_up(65_B, 64_B) == 128_B);
}

TEST_CASE("DType: names are Keras's and read back") {
  std::set<std::string> names;
  for (DType t : kAllDTypes) {
    CHECK(parse_dtype(to_string(t)) == t);
    CHECK(size_of(t) > Bytes{0});
    names.insert(std::string(to_string(t)));
  }
  CHECK(names.size() == kAllDTypes.size());
  CHECK(refusal([] { parse_dtype("float8"); }, Code::kDType) ==
        "\"float8\" is not a dtype; known: float32, float64, bfloat16, float16, int8 to int64, uint8 to uint64, bool");
  CHECK(is_floating(DType::kBFloat16));
  CHECK(!is_floating(DType::kInt32));
}

TEST_CASE("Shape: dimensions, slices and texts are as written") {
  const Shape s{32, 224, 224, 3};
  CHECK(to_string(s) == "[32, 224, 224, 3]");
  CHECK(to_string(Shape{}) == "[]");
  CHECK(Shape{}.size() == 1);
  CHECK(Shape{3, 0}.size() == 0);
  CHECK(s.back() == 3);
  CHECK(s[-4] == 32);
  CHECK(s.size() == int64_t{32} * 224 * 224 * 3);
  CHECK(s.with(-1, 1) == Shape{32, 224, 224, 1});
  CHECK(s.without(0) == Shape{224, 224, 3});
  CHECK(s.without(-1) == Shape{32, 224, 224});
  CHECK(s.slice(1, 3) == Shape{224, 224});
  CHECK(Shape{2}.with_front(7) == Shape{7, 2});
  CHECK(!(Shape{2, 3} == Shape{3, 2}));
  CHECK(!(Shape{2} == Shape{2, 1}));
  CHECK(format("{:<8}|", Shape{4, 8}) == "[4, 8]  |");
}

TEST_CASE("Shape: a dimension that is not there is refused, from both ends") {
  const Shape s{3, 4};
  CHECK(s[-2] == 3);
  for (const int i : {2, -3, 100})
    CHECK_THROWS_WITH(s[i], format("the shape [3, 4] has no dimension {}; it has 2", i).c_str());
  CHECK_THROWS_WITH(Shape().back(), "the shape [] has no dimension -1; it has 0");
  CHECK_THROWS_AS(s.with(2, 1), Error);
  CHECK_THROWS_AS(s.without(-3), Error);
  CHECK_THROWS_AS(s.slice(1, 3), Error);
}

TEST_CASE("Shape: what cannot be a shape is refused") {
  CHECK(refusal([] { Shape s{1, 2, 3, 4, 5, 6, 7, 8, 9}; }, Code::kShape) ==
        "a shape of 9 dimensions, but at most 8 are supported");
  CHECK(refusal([] { Shape s{1, -2}; }, Code::kShape) == "dimension 1 of a shape is -2");
  CHECK(refusal([] { (Shape{1, 2, 3, 4, 5, 6, 7, 8}.with_front(1)); }, Code::kShape) ==
        "the shape [1, 2, 3, 4, 5, 6, 7, 8] has no room for a batch dimension");
  CHECK(refusal([] { (Shape{int64_t{1} << 40, int64_t{1} << 40}.size()); }, Code::kShape) ==
        "the shape [1099511627776, 1099511627776] has more than 2^63 elements");
}

TEST_CASE("Shape: broadcasting is NumPy's and does not depend on the order") {
  const auto both = [](const Shape& a, const Shape& b) {
    CHECK(broadcast(a, b) == broadcast(b, a));
    return broadcast(a, b);
  };
  CHECK(both({8, 1, 6, 1}, {7, 1, 5}) == Shape{8, 7, 6, 5});
  CHECK(both({}, {3, 4}) == Shape{3, 4});
  CHECK(both({0, 3}, {1, 3}) == Shape{0, 3});
  CHECK(both({1}, {0}) == Shape{0});
  CHECK(refusal([] { broadcast({2, 3}, {2, 4}); }, Code::kShape) ==
        "shapes [2, 3] and [2, 4] do not broadcast: 3 against 4 in dimension 1 from the end");
}

TEST_CASE("Error: the text is followed by the cure, then by a line for each detail; JSON says the same") {
  const Error e = Error(Code::kMemory, "needs 2 GiB").hint("use \"less\"").with("where", "fit\n");
  CHECK(std::string(e.what()) == "needs 2 GiB; use \"less\"\n  where    fit\n");
  CHECK(e.json() ==
        R"({"code": "memory", "text": "needs 2 GiB", "hint": "use \"less\"", "details": {"where": "fit\u000a"}})");
  CHECK(std::string(Error(Code::kValue, "x").what()) == "x");
  Error named(Code::kFile, "f");
  CHECK(named.hint("h").hint() == "h");
  CHECK(std::string(named.what()) == "f; h");
}

TEST_CASE("Result: holds a value, or the error that asking for the value throws") {
  Result<int> good(3), bad(Error(Code::kValue, "no"));
  CHECK(good);
  CHECK(good.value() == 3);
  CHECK(!bad);
  CHECK(bad.error().text() == "no");
  CHECK(refusal([&] { bad.value(); }, Code::kValue) == "no");
}
