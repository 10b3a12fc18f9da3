// The slow twin: the nearest value of the small type, found by looking at all of them.
#include "base/half.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace millpond;

namespace {
// All finite values that are not negative, in order: bits 0, 1, 2, ... are already sorted.
template <class H>
const std::vector<double>& ladder() {
  static const std::vector<double> all = [] {
    std::vector<double> v;
    const uint32_t infinity = std::is_same_v<H, float16> ? 0x7c00 : 0x7f80;
    for (uint32_t b = 0; b < infinity; ++b) v.push_back(double(to_float(H{uint16_t(b)})));
    return v;
  }();
  return all;
}

template <class H>
uint16_t nearest(double d) {
  const std::vector<double>& all = ladder<H>();
  const double a = std::fabs(d);
  const uint16_t sign = std::signbit(d) ? 0x8000 : 0;
  const auto above = std::upper_bound(all.begin(), all.end(), a);
  const auto low = uint16_t(above - all.begin() - 1);
  // Behind the largest finite value comes, for the sake of rounding, the power of two that infinity stands for.
  const double next = above == all.end() ? std::ldexp(1.0, std::is_same_v<H, float16> ? 16 : 128) : *above;
  const double down = a - all[low], up = next - a;  // exact: neighbours within a factor of two, or far below 2^53 units
  const bool rise = up < down || (up == down && (low & 1));
  return uint16_t(sign | (low + rise));
}

template <class H>
void check_all_ways(double d) {
  const H direct = [&] {
    if constexpr (std::is_same_v<H, float16>)
      return to_float16(d);
    else
      return to_bfloat16(d);
  }();
  if (direct.bits != nearest<H>(d)) {
    CAPTURE(d);
    CHECK(direct.bits == nearest<H>(d));
  }
  const auto f = float(d);
  const H from_float = [&] {
    if constexpr (std::is_same_v<H, float16>)
      return to_float16(f);
    else
      return to_bfloat16(f);
  }();
  if (from_float.bits != nearest<H>(double(f))) {
    CAPTURE(f);
    CHECK(from_float.bits == nearest<H>(double(f)));
  }
}
}  // namespace

TEST_CASE_TEMPLATE("half: every value survives the way up to float and back", H, bfloat16, float16) {
  for (uint32_t b = 0; b < 65536; ++b) {
    const float f = to_float(H{uint16_t(b)});
    H back{};
    if constexpr (std::is_same_v<H, float16>)
      back = to_float16(f);
    else
      back = to_bfloat16(f);
    if (std::isnan(f)) {
      // A NaN stays one, with its sign; a signalling one becomes quiet.
      CHECK(std::isnan(to_float(back)));
      CHECK((back.bits & 0x8000) == (b & 0x8000));
    } else if (back.bits != b)
      CHECK(back.bits == b);
  }
}

TEST_CASE("half: known values have their known bits") {
  CHECK(to_bfloat16(1.0f).bits == 0x3f80);
  CHECK(to_bfloat16(-0.0f).bits == 0x8000);
  CHECK(to_bfloat16(3.14159265f).bits == 0x4049);
  CHECK(to_float16(1.0f).bits == 0x3c00);
  CHECK(to_float16(-2.0f).bits == 0xc000);
  CHECK(to_float16(65504.0f).bits == 0x7bff);
  CHECK(to_float16(65519.99f).bits == 0x7bff);
  CHECK(to_float16(65520.0f).bits == 0x7c00);
  CHECK(to_float16(0x1p-24f).bits == 1);
  CHECK(to_float16(0x1p-25f).bits == 0);
  CHECK(to_float16(0x1.000002p-25f).bits == 1);
  CHECK(to_float16(1e-40f).bits == 0);
  CHECK(to_float(float16{1}) == 0x1p-24f);
  CHECK(to_float(float16{0x3ff}) == 0x1.ff8p-15f);
  CHECK(std::isinf(to_float(float16{0xfc00})));
}

TEST_CASE_TEMPLATE(
    "half: float and double round to the nearest value, ties to even, half way points and neighbours included", H,
    bfloat16, float16) {
  const std::vector<double>& all = ladder<H>();
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const double mid = all[i] + (all[i + 1] - all[i]) / 2;
    for (double d : {all[i], mid, std::nextafter(mid, 0.0), std::nextafter(mid, 1e300),
                     double(std::nextafter(float(mid), 0.0f)), -mid})
      check_all_ways<H>(d);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random();
    float f = 0;
    std::memcpy(&f, &bits, sizeof f);
    if (std::isfinite(f)) check_all_ways<H>(double(f));
    check_all_ways<H>(std::ldexp(double(int64_t(bits)), int(random() % 200) - 160));
  }
}

TEST_CASE("half: a double next to a tie is not rounded twice") {
  // 1 + 2^-11 is half way between two float16; a little more must go up, though as a float it is the tie itself.
  const double d = 1 + 0x1p-11 + 0x1p-40;
  CHECK(float(d) == 1 + 0x1p-11f);
  CHECK(to_float16(d).bits == 0x3c01);
  CHECK(to_float16(1 + 0x1p-11).bits == 0x3c00);
  CHECK(to_bfloat16(1 + 0x1p-8 + 0x1p-50).bits == 0x3f81);
}

TEST_CASE("half: conversions can run at compile time") {
  static_assert(to_float16(0.5f).bits == 0x3800);
  static_assert(to_float(to_bfloat16(-2.5)) == -2.5f);
}
