// Numbers out of text, correctly rounded (to nearest, ties to even), without locale and without allocation.
// A number ends at the first byte that cannot belong to it. kSlack bytes behind the text must be readable, and the byte
// right behind it must be one that no number holds (a delimiter, a line end).
//
// How: up to eight digits at once in one 64-bit word, without a loop over them. Then w * 10^e with w < 2^64 is
//   float    computed in double with an error of at most 3 units in the last place; unless that lies within 4 of them
//   of
//            the middle between two floats, rounding it gives the float nearest to the text;
//   double   exact operands where w <= 2^53 and |e| <= 22; otherwise one operation of the x87's 64-bit mantissa, whose
//            result is rounded again unless it is exactly the middle between two doubles.
// What is left (more than 19 digits, large exponents, middles) goes to std::from_chars.
//
// quick_number reads only the usual shape, -12.345 and then what must follow. It finds both ends of the digits in one
// look at 32 bytes: where the next field begins is known some fifteen cycles after where this one did, whatever its
// value takes.
#pragma once
#include <emmintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millpond::data {

/// So many bytes behind the last one of a text are read (and not used).
inline constexpr size_t kSlack = 64;

namespace number {
inline constexpr uint64_t kTens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
inline constexpr double kExact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr double kRounded[] = {1e-0,  1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,
                                      1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19,
                                      1e-20, 1e-21, 1e-22, 1e-23, 1e-24, 1e-25, 1e-26, 1e-27, 1e-28, 1e-29,
                                      1e-30, 1e-31, 1e-32, 1e-33, 1e-34, 1e-35, 1e-36, 1e-37};

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

/// Exactly n digits, 1 to 8.
[[gnu::always_inline]] inline uint64_t digits_of(const char* p, int n) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  v = (v ^ 0x3030303030303030u) << (64 - 8 * n);
  v = v * 10 + (v >> 8);
  return (((v & 0x000000ff000000ffu) * 0x000f424000000064u + ((v >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
          32) &
         0xffffffffu;
}
/// A bit for each of 32 bytes that is no digit.
[[gnu::always_inline]] inline uint32_t not_digits(const char* p) {
  const __m128i zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8(9);
  const auto half = [&](const char* q) {
    const __m128i v = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q)), zero);
    return uint32_t(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, nine), v)));
  };
  return ~(half(p) | half(p + 16) << 16);
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

namespace number {
// w * 10^-places; false: not sure.
[[gnu::always_inline]] inline bool scaled(int64_t w, int places, bool negative, float& value) {
  const double x = double(w) * kRounded[places];
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  value = float(std::bit_cast<double>(bits | uint64_t(negative) << 63));
  return (bits & 0x1fffffff) - (0x10000000 - 4) > 8;
}
[[gnu::always_inline]] inline bool scaled(int64_t w, int places, bool negative, double& value) {
  double x;
  if (w <= int64_t{1} << 53) {
    x = double(w) / kExact[places];
  } else {
    const long double wide = (long double)w / kExact[places];
    uint64_t mantissa;
    std::memcpy(&mantissa, &wide, 8);
    if ((mantissa & 0x7ff) == 0x400) return false;
    x = double(wide);
  }
  value = std::bit_cast<double>(std::bit_cast<uint64_t>(x) | uint64_t(negative) << 63);
  return true;
}
}  // namespace number

/// A number of the usual shape with `stop` right behind it: where that is; otherwise nullptr, and parse_number must
/// decide.
template <class T>
[[gnu::always_inline]] inline const char* quick_number(const char* p, char stop, T& value) {
  const bool negative = *p == '-';
  uint32_t other = number::not_digits(p) & ~uint32_t(negative);
  const int i = std::countr_zero(other | 0x80000000u);
  const int whole = i - negative;
  if (unsigned(whole - 1) > 7) return nullptr;
  if (p[i] == '.') {
    other &= other - 1;
    const int j = std::countr_zero(other | 0x80000000u), places = j - i - 1;
    if (p[j] != stop || unsigned(places - 1) > 16 || whole + places > 18) return nullptr;
    uint64_t w = number::digits_of(p + negative, whole);
    const char* f = p + i + 1;
    int left = places;
    for (; left > 8; left -= 8, f += 8) w = w * 100000000 + number::digits_of(f, 8);
    w = w * number::kTens[left] + number::digits_of(f, left);
    return number::scaled(int64_t(w), places, negative, value) ? p + j : nullptr;
  }
  if (p[i] != stop) return nullptr;
  return number::scaled(int64_t(number::digits_of(p + negative, whole)), 0, negative, value) ? p + i : nullptr;
}
template <>
[[gnu::always_inline]] inline const char* quick_number(const char* p, char stop, int64_t& value) {
  const bool negative = *p == '-';
  const int i = std::countr_zero((number::not_digits(p) & ~uint32_t(negative)) | 0x80000000u), n = i - negative;
  if (p[i] != stop || unsigned(n - 1) > 15) return nullptr;
  uint64_t w = 0;
  p += negative;
  if (n > 8) w = number::digits_of(p, n - 8) * 100000000;
  w += number::digits_of(p + (n > 8 ? n - 8 : 0), n > 8 ? 8 : n);
  value = negative ? -int64_t(w) : int64_t(w);
  return p + n;
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
