#include "data/formats/number.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/random.h"

using namespace millpond;
using namespace millpond::data;

namespace {
int64_t quick_ones = 0;
template <class T>
T strto(const char* s) {
  if constexpr (sizeof(T) == 4)
    return std::strtof(s, nullptr);
  else
    return std::strtod(s, nullptr);
}
// Bit by bit the number that the C library reads, and the end at the same place.
template <class T>
void same(const std::string& text) {
  const std::string padded = text + "," + std::string(kSlack, '7');
  T got = 77;
  const char* end = parse_number(padded.c_str(), got);
  const T wanted = strto<T>(text.c_str());
  T quick = 77;
  if (const char* stop = quick_number(padded.c_str(), ',', quick)) {
    ++quick_ones;
    if (stop != end || std::memcmp(&quick, &wanted, sizeof quick) != 0) CHECK_MESSAGE(false, "quick_number ", text);
  }
  const bool equal = end == padded.c_str() + text.size() && std::memcmp(&got, &wanted, sizeof got) == 0;
  if (!equal) {
    CAPTURE(text);
    CAPTURE(got);
    CAPTURE(wanted);
    CHECK(equal);
  }
}
void same_both(const std::string& text) {
  same<float>(text);
  same<double>(text);
}
template <class... A>
std::string print(const char* f, A... a) {
  char b[2000];
  std::snprintf(b, sizeof b, f, a...);
  return b;
}
}  // namespace

TEST_CASE("number: floats and doubles of every size are read as the C library reads them") {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random.next();
    double d;
    std::memcpy(&d, &bits, 8);
    float f;
    std::memcpy(&f, &bits, 4);
    if (std::isfinite(d)) {
      same_both(print("%.17g", d));
      same_both(print("%.*g", int(random.below(25)), d));
    }
    if (std::isfinite(f)) {
      same_both(print("%.9g", double(f)));
      same_both(print("%.*f", int(random.below(12)), double(f) > 1e30 ? 1.0 : double(f)));
    }
    same_both(print("%.6f", random.uniform() * 100));
    same_both(print("%.*f", int(random.below(20)), random.normal() * 1000));
  }
  CHECK(quick_ones > 500000);
}

TEST_CASE("number: digits, points and exponents at random") {
  Random random(2);
  for (int i = 0; i < 300000; ++i) {
    std::string s = random.below(3) ? "" : random.below(2) ? "-" : "+";
    for (uint64_t n = 1 + random.below(random.below(4) ? 9 : 24); n > 0; --n) s += char('0' + random.below(10));
    if (random.below(2)) {
      s += '.';
      for (uint64_t n = random.below(random.below(4) ? 9 : 24); n > 0; --n) s += char('0' + random.below(10));
    }
    if (random.below(3) == 0)
      s += (random.below(2) ? "e" : "E") + print("%s%d", random.below(3) == 0 ? "+" : "", int(random.below(700)) - 350);
    if (s.find("+-") != std::string::npos) continue;
    same_both(s);
  }
}

TEST_CASE("number: exactly between two floats or two doubles, and a digit beside it") {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random.next();
    float f;
    std::memcpy(&f, &bits, 4);
    f = std::fabs(f);
    if (std::isfinite(f) && f < 1e37f && f > 1e-30f) {
      const double middle = (double(f) + double(std::nextafter(f, INFINITY))) / 2;
      std::string s = print("%.200g", middle);
      same_both(s);
      if (s.find('e') == std::string::npos) {
        same_both(s + (s.find('.') == std::string::npos ? ".0000000000000000000000001" : "1"));
        same_both(print("%.18g", middle));
      }
    }
    const double d = double(1 + random.below(1u << 30)) * std::ldexp(1.0, int(random.below(60)));
    const long double between = ((long double)d + std::nextafter(d, INFINITY)) / 2;
    same_both(print("%.50Lg", between));
  }
  // Whole numbers beside the middle of two floats: the window in which double is not sure.
  for (uint64_t k = 0; k < 100000; ++k)
    same_both(std::to_string((uint64_t(1) << 24) + k) + (k % 3 == 0 ? ".5" : k % 3 == 1 ? "" : ".00000001"));
  for (int k = 0; k < 2000; ++k) same_both(std::to_string((uint64_t(1) << 53) + uint64_t(k)));
}

TEST_CASE("number: ends of the ranges, zeros, infinities") {
  for (const char* s : {"0",
                        "-0",
                        "0.0",
                        "-0.0e5",
                        "0e999999999999",
                        "1e400",
                        "-1e400",
                        "1e-400",
                        "-1e-400",
                        "1e39",
                        "3.4028235e38",
                        "3.4028236e38",
                        "1.1754943e-38",
                        "1e-45",
                        "7e-46",
                        "1.7976931348623157e308",
                        "1.7976931348623159e308",
                        "2.2250738585072014e-308",
                        "4.9406564584124654e-324",
                        "2.4703282292062327e-324",
                        "1e99999999999999999999",
                        "1e-99999999999999999999",
                        "5.",
                        ".5",
                        "-.5",
                        "18446744073709551615",
                        "18446744073709551616",
                        "99999999999999999999",
                        "0.000000000000000000000000000000000000000000001",
                        "1000000000000000000000000000000000000000000000000",
                        "inf",
                        "-INF",
                        "Infinity",
                        "123456789012345678901234567890e-30"})
    same_both(s);
  float f = 0;
  const std::string nan = "NaN," + std::string(kSlack, ' ');
  CHECK(parse_number(nan.c_str(), f) == nan.c_str() + 3);
  CHECK(std::isnan(f));
}

TEST_CASE("number: what is none is refused, and what follows one is left") {
  for (const char* s : {"", "-", "+", ".", "-.", "e5", "x", "+-1", "--1", "in", "na", "1e", "1e+"}) {
    const std::string padded = std::string(s) + "," + std::string(kSlack, '9');
    double d;
    int64_t i;
    CAPTURE(s);
    CHECK(parse_number(padded.c_str(), d) != padded.c_str() + std::string(s).size());
    CHECK(parse_number(padded.c_str(), i) != padded.c_str() + std::string(s).size());
  }
  const std::string more = "12.5abc" + std::string(kSlack, ' ');
  double d = 0;
  CHECK(parse_number(more.c_str(), d) == more.c_str() + 4);
  CHECK(d == 12.5);
}

TEST_CASE("number: whole numbers up to the ends of int64, and not beyond") {
  Random random(4);
  const auto read = [](const std::string& s, int64_t& v) {
    const std::string padded = s + "," + std::string(kSlack, '9');
    int64_t quick = 0;
    if (const char* stop = quick_number(padded.c_str(), ',', quick)) {
      CHECK(stop == padded.c_str() + s.size());
      CHECK(quick == std::stoll(s));
    }
    return parse_number(padded.c_str(), v) == padded.c_str() + s.size();
  };
  for (int i = 0; i < 100000; ++i) {
    const auto wanted = int64_t(random.next()) >> random.below(64);
    int64_t v = 0;
    const bool good = read(std::to_string(wanted), v) && v == wanted;
    if (!good) CHECK_MESSAGE(good, wanted);
  }
  int64_t v = 0;
  CHECK((read("9223372036854775807", v) && v == INT64_MAX));
  CHECK((read("-9223372036854775808", v) && v == INT64_MIN));
  CHECK((read("+0000000000000000000000000000012", v) && v == 12));
  CHECK_FALSE(read("9223372036854775808", v));
  CHECK_FALSE(read("-9223372036854775809", v));
  CHECK_FALSE(read("99999999999999999999999", v));
}
