// Bytes: an amount of memory. A real type, so that a count of elements or of steps cannot be passed for it.
#pragma once
#include <compare>
#include <cstdint>
#include <string>

namespace millpond {

struct Bytes {
  int64_t value = 0;

  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t v) : value(v) {}
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes o) { return value += o.value, *this; }
  constexpr Bytes& operator-=(Bytes o) { return value -= o.value, *this; }
  constexpr double mib() const { return double(value) / (1 << 20); }
};

constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.value + b.value}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.value - b.value}; }
constexpr Bytes operator*(Bytes a, int64_t n) { return Bytes{a.value * n}; }
constexpr Bytes round_up(Bytes a, Bytes unit) { return Bytes{(a.value + unit.value - 1) / unit.value * unit.value}; }

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{int64_t(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{int64_t(n) << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{int64_t(n) << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{int64_t(n) << 30}; }
}  // namespace literals

/// A computed amount: the nearest that fits, 0 for what is no number.
constexpr Bytes to_bytes(double amount) {
  if (amount >= 9.2e18) return Bytes{INT64_MAX};
  if (amount <= -9.2e18) return Bytes{-INT64_MAX};
  return amount == amount ? Bytes{int64_t(amount)} : Bytes{};
}

/// "512 B", "14.2 KiB", "1.21 GiB": three digits, units of 1024. The one place where bytes become text.
std::string to_string(Bytes bytes);

/// Reads "64MiB", "1.5 GiB", "2GB" (1000-based), "4096". Throws Error(kUsage) on anything else.
Bytes parse_bytes(const std::string& text);

}  // namespace millpond
