#include "base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace millpond {

namespace {
constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, bits reversed

constexpr auto kTables = [] {  // four bytes at a time
  std::array<std::array<uint32_t, 256>, 4> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c >> 1) ^ (c & 1 ? kPolynomial : 0);
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t k = 1; k < 4; ++k) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
  return t;
}();

uint64_t load64(const std::byte* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
uint32_t load32(const std::byte* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

// The instruction takes three cycles and one can begin in each: three streams at once. Their results are joined by
// multiplying with x^(8 * kPart) modulo the polynomial, which is linear and therefore four tables of 256 entries.
constexpr size_t kPart = 1024;
constexpr auto kShift = [] {
  // The CRC register, as a vector of bits, after kPart zero bytes: column by column.
  std::array<uint32_t, 32> column{};
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t c = uint32_t{1} << bit;
    for (size_t i = 0; i < kPart; ++i) c = (c >> 8) ^ kTables[0][c & 255];
    column[bit] = c;
  }
  std::array<std::array<uint32_t, 256>, 4> t{};
  for (size_t k = 0; k < 4; ++k)
    for (size_t i = 0; i < 256; ++i)
      for (size_t bit = 0; bit < 8; ++bit)
        if (i >> bit & 1) t[k][i] ^= column[8 * k + bit];
  return t;
}();
uint32_t after_zeros(uint32_t c) {
  return kShift[0][c & 255] ^ kShift[1][c >> 8 & 255] ^ kShift[2][c >> 16 & 255] ^ kShift[3][c >> 24];
}

__attribute__((target("sse4.2"))) uint32_t crc_by_instruction(const std::byte* p, size_t n, uint32_t crc) {
  uint64_t c = ~crc;
  for (; n >= 3 * kPart; n -= 3 * kPart, p += 3 * kPart) {
    uint64_t b = 0, a = 0;
    for (size_t i = 0; i < kPart; i += 8) {
      c = _mm_crc32_u64(c, load64(p + i));
      b = _mm_crc32_u64(b, load64(p + kPart + i));
      a = _mm_crc32_u64(a, load64(p + 2 * kPart + i));
    }
    c = after_zeros(after_zeros(uint32_t(c)) ^ uint32_t(b)) ^ uint32_t(a);
  }
  for (; n >= 8; n -= 8, p += 8) c = _mm_crc32_u64(c, load64(p));
  auto d = uint32_t(c);
  for (; n > 0; --n, ++p) d = _mm_crc32_u8(d, uint8_t(*p));
  return ~d;
}
}  // namespace

uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t c = ~before;
  const std::byte* p = bytes.data();
  size_t n = bytes.size();
  for (; n >= 4; n -= 4, p += 4) {
    c ^= load32(p);
    c = kTables[3][c & 255] ^ kTables[2][c >> 8 & 255] ^ kTables[1][c >> 16 & 255] ^ kTables[0][c >> 24];
  }
  for (; n > 0; --n, ++p) c = (c >> 8) ^ kTables[0][(c ^ uint32_t(*p)) & 255];
  return ~c;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  static const bool fast = __builtin_cpu_supports("sse4.2");
  return fast ? crc_by_instruction(bytes.data(), bytes.size(), before) : crc32c_by_table(bytes, before);
}

}  // namespace millpond
