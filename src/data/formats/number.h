// Numbers out of text, correctly rounded (to nearest, ties to even), without locale and without allocation.
// A number ends at the first byte that cannot belong to it. kSlack bytes behind the text must be readable, and the byte
// right behind it must be one that no number holds (a delimiter, a line end).
//
// How: up to eight digits at once in one 64-bit word, without a loop over them. Then w * 10^e with w < 2^64 is
//   float    computed in double with an error of at most 3 units in the last place; unless that lies within 4 of them of
//            the middle between two floats, rounding it gives the float nearest to the text;
//   double   exact operands where w <= 2^53 and |e| <= 22; otherwise one operation of the x87's 64-bit mantissa, whose
//            result is rounded again unless it is exactly the middle between two doubles.
// What is left (more than 19 digits, large exponents, middles) goes to std::from_chars.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millpond::data {

/// So many bytes behind the last one of a text are read (and not used).
inline constexpr size_t kSlack = 16;

namespace number {
inline constexpr uint64_t kTens[] = {1,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000};
inline constexpr double kExact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr double kRounded[] = {1e-0,  1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,  1e-10, 1e-11, 1e-12,
                                      1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22, 1e-23, 1e-24, 1e-25,
                                      1e-26, 1e-27, 1e-28, 1e-29, 1e-30, 1e-31, 1e-32, 1e-33, 1e-34, 1e-35, 1e-36, 1e-37};

/// The digits at `p`, at most eight of them: how many, and `value` = value * 10^how many + them.
[[gnu::always_inline]] inline int digits(const char* p, uint64_t& value) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  v ^= 0x3030303030303030u;  // a digit is now below 10
  const uint64_t other = ((v + 0x7676767676767676u) | v) & 0x8080808080808080u;
  if (other & 0x80) return 0;
  const int n = other ? std::countr_zero(other) >> 3 : 8;
  v <<= 64 - 8 * n;  // the last digit to the top: zeros come before the first
  v = v * 10 + (v >> 8);
  v = ((v & 0x000000ff000000ffu) * 0x000f424000000064u + ((v >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32;
  value = value * kTens[n] + (v & 0xffffffffu);
  return n;
}

/// sign, digits, point, digits, exponent: value = w * 10^e.
struct Decimal {
  uint64_t w = 0;
  int64_t e = 0;
  bool negative = false;
  bool plain = false;  // w holds all digits
};
/// The end of the number, nullptr where there is no digit.
[[gnu::always_inline]] inline const char* decimal(const char* p, Decimal& d) {
  d.negative = *p == '-';
  p += *p == '-' || *p == '+';
  int64_t seen = 0;
  int n;
  do {
    n = digits(p, d.w);
    p += n;
    seen += n;
  } while (n == 8);
  if (*p == '.') {
    const char* point = ++p;
    do {
      n = digits(p, d.w);
      p += n;
    } while (n == 8);
    d.e = point - p;
    seen += p - point;
  }
  if (seen == 0) return nullptr;
  d.plain = seen <= 19;
  if ((*p | 0x20) == 'e') {
    const char* q = p + 1;
    const bool minus = *q == '-';
    q += *q == '-' || *q == '+';
    uint64_t x = 0;
    const int m = digits(q, x);
    if (m > 0) {
      q += m;
      if (m == 8)
        while (*q >= '0' && *q <= '9') ++q;
      d.e += minus ? -int64_t(x) : int64_t(x);
      d.plain &= m < 8;
      p = q;
    }
  }
  return p;
}

/// The whole text [begin, end) anew, by std::from_chars.
void slow(const char* begin, const char* end, float& value);
void slow(const char* begin, const char* end, double& value);
/// "inf", "infinity", "nan", with a sign, in any case; or nullptr.
const char* word(const char* p, double& value);
const char* slow_int(const char* p, int64_t& value);
}  // namespace number

/// The end of the number, or nullptr: no number is here, or it does not fit the type (int64).
/// Blanks are not passed over. Float: digits, point, exponent, sign; "inf", "infinity", "nan" in any case.
[[gnu::always_inline]] inline const char* parse_number(const char* text, float& value) {
  number::Decimal d;
  const char* end = number::decimal(text, d);
  if (!end) [[unlikely]] {
    double w = 0;
    end = number::word(text, w);
    value = float(w);
    return end;
  }
  if (d.plain && d.e >= -37 && d.e <= 18) [[likely]] {
    const double x = double(d.w) * (d.e < 0 ? number::kRounded[-d.e] : number::kExact[d.e]);
    const uint64_t low = std::bit_cast<uint64_t>(x) & 0x1fffffff;
    if (low - (0x10000000 - 4) > 8) [[likely]] {
      value = float(d.negative ? -x : x);
      return end;
    }
  }
  number::slow(text, end, value);
  return end;
}

[[gnu::always_inline]] inline const char* parse_number(const char* text, double& value) {
  number::Decimal d;
  const char* end = number::decimal(text, d);
  if (!end) [[unlikely]]
    return number::word(text, value);
  if (d.plain) [[likely]] {
    if (d.w <= uint64_t{1} << 53 && d.e >= -22 && d.e <= 22) [[likely]] {
      const double x = d.e < 0 ? double(d.w) / number::kExact[-d.e] : double(d.w) * number::kExact[d.e];
      value = d.negative ? -x : x;
      return end;
    }
    if (d.e >= -22 && d.e <= 22) {
      static_assert(sizeof(long double) == 16);
      const long double x = d.e < 0 ? (long double)d.w / number::kExact[-d.e] : (long double)d.w * number::kExact[d.e];
      uint64_t mantissa;
      std::memcpy(&mantissa, &x, 8);
      if ((mantissa & 0x7ff) != 0x400) {
        value = d.negative ? -double(x) : double(x);
        return end;
      }
    }
  }
  number::slow(text, end, value);
  return end;
}

[[gnu::always_inline]] inline const char* parse_number(const char* text, int64_t& value) {
  const bool negative = *text == '-';
  const char* p = text + (*text == '-' || *text == '+');
  uint64_t w = 0;
  int n = number::digits(p, w);
  if (n == 0) [[unlikely]]
    return nullptr;
  if (n == 8) {
    p += 8;
    n = number::digits(p, w);
    if (n == 8) return number::slow_int(text, value);
  }
  value = negative ? -int64_t(w) : int64_t(w);
  return p + n;
}

}  // namespace millpond::data
