#include "millpond/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/segment.h"

using namespace millpond;

namespace {
Bytes held(const std::string& account) {
  Bytes sum;
  each_holding([&](const std::string& a, Bytes b) { sum += a == account ? b : Bytes{0}; });
  return sum;
}
template <class F>
std::string refusal(F f, Code code) {
  try {
    (void)f();
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "not refused";
}
}  // namespace

TEST_CASE("Tensor: a new one is zero, aligned for vectors, and charged to its account until the last copy goes") {
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{16383}, int64_t{16384}, int64_t{300000}}) {
    {
      Tensor t(DType::kFloat32, {n}, "test/tensor");
      CHECK(t);
      CHECK(reinterpret_cast<uintptr_t>(t.data()) % 64 == 0);
      for (float v : t.values<float>()) REQUIRE(v == 0.0f);
      const Bytes paid = held("test/tensor");
      CHECK(paid >= t.bytes());
      CHECK(paid < t.bytes() + 4_KiB);
      Tensor copy = t;
      t = Tensor();
      CHECK(held("test/tensor") == paid);
      CHECK(copy.size() == n);
    }
    CHECK(held("test/tensor") == Bytes{0});
  }
}

TEST_CASE("Tensor: copies share the values, astype makes a copy of its own") {
  Tensor a = Tensor::of<float>(std::vector<float>{1, 2, 3, 4}, {2, 2});
  Tensor b = a, c = a.astype(DType::kFloat32);
  a.values<float>()[0] = 9;
  CHECK(b.at(0) == 9);
  CHECK(c.at(0) == 1);
  CHECK(c.shape() == Shape{2, 2});
}

TEST_CASE("Tensor: a view costs nothing and keeps its owner alive, through rows and reshaped too") {
  auto owner = std::make_shared<std::vector<int32_t>>(12);
  for (int i = 0; i < 12; ++i) (*owner)[size_t(i)] = i;
  const std::weak_ptr<void> alive = owner;
  Tensor part;
  {
    const Tensor all = Tensor::view(owner->data(), DType::kInt32, {4, 3}, owner);
    owner.reset();
    part = all.rows(1, 3).reshaped({3, 2});
  }
  CHECK(!alive.expired());
  CHECK(part.shape() == Shape{3, 2});
  CHECK(part.at(0) == 3);
  CHECK(part.at(5) == 8);
  part = Tensor();
  CHECK(alive.expired());
}

TEST_CASE("Tensor: an empty range of rows is a tensor of no elements") {
  const Tensor t(DType::kFloat64, {4, 3});
  CHECK(t.rows(4, 4).size() == 0);
  CHECK(t.rows(0, 0).shape() == Shape{0, 3});
  CHECK(t.rows(4, 4).astype(DType::kInt32).size() == 0);
}

TEST_CASE("Tensor: every type converts to every other, and small whole numbers arrive unchanged") {
  for (DType from : kAllDTypes)
    for (DType to : kAllDTypes) {
      const Tensor source = Tensor::of<int64_t>(std::vector<int64_t>{0, 1, 2, 100}, {4}).astype(from);
      const Tensor t = source.astype(to);
      CHECK(t.dtype() == to);
      const bool truth = from == DType::kBool || to == DType::kBool;
      for (int i = 0; i < 4; ++i)
        CHECK(t.at(i) == (truth ? double(i > 0) : std::vector<double>{0, 1, 2, 100}[size_t(i)]));
    }
}

TEST_CASE("Tensor: a float outside the range of a whole number becomes what NumPy makes of it") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor t = Tensor::of<double>(std::vector<double>{1e30, -1e30, inf, std::nan(""), 2147483647.0, 300.9, -1.9,
                                                          3e9, -3e9, 1e10, 9223372036854775808.0, 1e19, 70000},
                                      {13});
  const auto as = [&](DType type) {
    std::vector<int64_t> all;
    const Tensor made = t.astype(type);
    for (int64_t i = 0; i < 13; ++i)  // the bits: no double holds all of them
      all.push_back(type == DType::kUInt64  ? int64_t(made.values<uint64_t>()[size_t(i)])
                    : type == DType::kInt64 ? made.values<int64_t>()[size_t(i)]
                                            : int64_t(made.at(i)));
    return all;
  };
  using List = std::vector<int64_t>;
  const int64_t least = INT32_MIN;
  CHECK(as(DType::kInt8) == List{0, 0, 0, 0, -1, 44, -1, 0, 0, 0, 0, 0, 112});
  CHECK(as(DType::kUInt8) == List{0, 0, 0, 0, 255, 44, 255, 0, 0, 0, 0, 0, 112});
  CHECK(as(DType::kInt16) == List{0, 0, 0, 0, -1, 300, -1, 0, 0, 0, 0, 0, 4464});
  CHECK(as(DType::kInt32) ==
        List{least, least, least, least, INT32_MAX, 300, -1, least, least, least, least, least, 70000});
  CHECK(as(DType::kUInt32) ==
        List{0, 2147483648, 0, 2147483648, 2147483647, 300, 4294967295, 3000000000, 2147483648, 0, 0, 0, 70000});
  CHECK(as(DType::kInt64) == List{INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, 2147483647, 300, -1, 3000000000,
                                  -3000000000, 10000000000, INT64_MIN, INT64_MIN, 70000});
  CHECK(as(DType::kUInt64) == List{0, INT64_MIN, 0, INT64_MIN, 2147483647, 300, -1, 3000000000, -3000000000,
                                   10000000000, INT64_MIN, int64_t(uint64_t(10000000000000000000u)), 70000});
}

TEST_CASE("Tensor: between whole numbers the low bits stay, as in NumPy") {
  const Tensor t = Tensor::of<int64_t>(std::vector<int64_t>{256 + 7, -1, (int64_t{1} << 32) + 5}, {3});
  CHECK(t.astype(DType::kUInt8).at(0) == 7);
  CHECK(t.astype(DType::kUInt8).at(1) == 255);
  CHECK(t.astype(DType::kInt32).at(2) == 5);
}

TEST_CASE("Tensor: a large whole number rounds once on its way to bfloat16") {
  // Half way between two bfloat16 plus one: a double cannot hold the one, so two roundings would lose it.
  const int64_t tie = (int64_t{1} << 62) + (int64_t{1} << 54);
  const Tensor t = Tensor::of<int64_t>(std::vector<int64_t>{tie, tie + 1, -tie - 1, INT64_MIN, INT64_MAX}, {5})
                       .astype(DType::kBFloat16);
  CHECK(t.values<bfloat16>()[0].bits == to_bfloat16(0x1p62).bits);
  CHECK(t.values<bfloat16>()[1].bits == to_bfloat16(0x1p62).bits + 1);
  CHECK(t.values<bfloat16>()[2].bits == to_bfloat16(-0x1p62).bits + 1);
  CHECK(t.at(3) == -0x1p63);
  CHECK(t.at(4) == 0x1p63);
  CHECK(std::isinf(Tensor::of<int64_t>(std::vector<int64_t>{65520}, {1}).astype(DType::kFloat16).at(0)));
}

TEST_CASE("Tensor: a bool that is some other byte counts as true") {
  uint8_t raw[] = {0, 1, 2, 255};
  const Tensor t = Tensor::view(raw, DType::kBool, {4});
  CHECK(t.at(3) == 1);
  CHECK(t.astype(DType::kFloat32).at(2) == 1);
}

TEST_CASE("Tensor: one without memory has no values") {
  CHECK(Tensor().values<float>().empty());
  const Tensor none;
  CHECK(none.values<float>().empty());
}

TEST_CASE("Tensor: is made of any range of values") {
  const std::vector<float> v{1, 2, 3};
  CHECK(Tensor::of(v, {3}).at(2) == 3);
  CHECK(Tensor::of({1, 2}, {1, 2}).dtype() == DType::kInt32);
  CHECK(Tensor::of(std::span<const float>(v), {3, 1}).at(0) == 1);
  CHECK_THROWS_AS(Tensor::of(v, {4}), Error);
}

TEST_CASE("Tensor: a wrong use is refused with what was asked and what there is") {
  Tensor t(DType::kFloat32, {4, 3});
  CHECK(refusal([&] { t.values<int32_t>(); }, Code::kDType) ==
        "a tensor of float32 was read as int32; use astype, or ask for float32");
  CHECK(refusal([&] { return t.rows(2, 5); }, Code::kShape) ==
        "rows [2, 5) of a tensor of shape [4, 3] do not exist; it has rows [0, 4)");
  CHECK(refusal([&] { return t.rows(3, 2); }, Code::kShape) ==
        "rows [3, 2) of a tensor of shape [4, 3] do not exist; it has rows [0, 4)");
  CHECK(refusal([&] { return Tensor(DType::kFloat32, {}).rows(0, 0); }, Code::kShape) ==
        "rows [0, 0) of a tensor of shape [] do not exist; a scalar has no rows");
  CHECK(refusal([&] { return t.reshaped({5}); }, Code::kShape) ==
        "a tensor of shape [4, 3] has 12 elements and cannot take the shape [5] of 5");
  CHECK(refusal([&] { t.at(12); }, Code::kValue) == "element 12 of a tensor of shape [4, 3] does not exist; it has 12");
  CHECK(refusal([&] { return Tensor(DType::kFloat64, {int64_t{1} << 61}); }, Code::kShape) ==
        "a tensor of shape [2305843009213693952] and type float64 has more than 2^63 bytes");
  CHECK(refusal([&] { return Tensor(DType::kFloat32, {int64_t{1} << 50}, "data/huge"); }, Code::kMemory)
            .starts_with("4.00 PiB of address space asked for data/huge"));
}
