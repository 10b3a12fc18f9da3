#include "data/formats/number.h"

#include <charconv>
#include <limits>

namespace millpond::data::number {

namespace {
// from_chars knows no '+', and leaves the value alone where it is too large or too small for the type.
template <class T>
void convert(const char* begin, const char* end, T& value) {
  const bool negative = *begin == '-';
  begin += *begin == '-' || *begin == '+';
  T x = 0;
  const auto [stop, error] = std::from_chars(begin, end, x);
  if (error == std::errc::result_out_of_range) {
    // The place of the first digit that is not 0 tells which: 10^place <= |value| < 10^(place + 1).
    int64_t before = 0, after = 0, exponent = 0;
    const char* p = begin;
    bool some = false;
    for (; *p >= '0' && *p <= '9'; ++p) {
      some |= *p != '0';
      before += some;
    }
    if (*p == '.')
      for (++p; *p >= '0' && *p <= '9'; ++p) {
        some |= *p != '0';
        after += !some;
      }
    if (p < end && (*p | 0x20) == 'e') {
      ++p;
      const bool minus = *p == '-';
      p += *p == '-' || *p == '+';
      for (; p < end; ++p)
        if (exponent < int64_t{1} << 50) exponent = exponent * 10 + (*p - '0');
      if (minus) exponent = -exponent;
    }
    x = before - after + exponent > 0 ? std::numeric_limits<T>::infinity() : T(0);
  }
  value = negative ? -x : x;
}

bool takes(const char*& p, const char* lower) {
  const char* q = p;
  for (; *lower; ++lower, ++q)
    if ((*q | 0x20) != *lower) return false;
  p = q;
  return true;
}
}  // namespace

void slow(const char* begin, const char* end, float& value) { convert(begin, end, value); }
void slow(const char* begin, const char* end, double& value) { convert(begin, end, value); }

const char* word(const char* p, double& value) {
  const bool negative = *p == '-';
  p += *p == '-' || *p == '+';
  if (takes(p, "inf")) {
    takes(p, "inity");
    value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return p;
  }
  if (takes(p, "nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
    return p;
  }
  return nullptr;
}

const char* slow_int(const char* p, int64_t& value) {
  const bool negative = *p == '-';
  p += *p == '-' || *p == '+';
  int64_t w = 0;  // negative: the range reaches one further down
  for (; *p >= '0' && *p <= '9'; ++p)
    if (__builtin_mul_overflow(w, 10, &w) || __builtin_sub_overflow(w, *p - '0', &w)) return nullptr;
  if (!negative && __builtin_sub_overflow(int64_t{0}, w, &w)) return nullptr;
  value = w;
  return p;
}

}  // namespace millpond::data::number
