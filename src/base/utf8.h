// UTF-8, one character at a time: the text may be a stranger's.
#pragma once
#include <cstddef>
#include <string_view>

namespace millpond {

struct Utf8Character {
  char32_t value = 0;
  size_t size = 1;   // bytes
  bool good = true;  // well-formed; otherwise one byte is passed over
};

/// The first character of a text that is not empty.
inline Utf8Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1, true};
  const size_t n = first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (n == 0 || n > text.size()) return {0, 1, false};
  char32_t value = first & (0x7fu >> n);
  for (size_t i = 1; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {0, 1, false};
    value = value << 6 | (byte & 0x3f);
  }
  static constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {0, 1, false};
  return {value, n, true};
}

}  // namespace millpond
