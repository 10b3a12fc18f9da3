#include "verdict/numbers.h"

#include <cmath>

#include "base/format.h"

namespace millpond::verdict {
namespace {

/// With one digit behind the point where that says something: "2.4", "2", "14".
std::string tenths(double n) {
  const double rounded = std::round(n * 10) / 10;
  if (rounded >= 10 || rounded == std::floor(rounded)) return thousands(n);
  return format("{:.1f}", rounded);
}

}  // namespace

std::string duration(double s) {
  if (s < 0.0995) return format("{:.0f} ms", 1000 * s);
  if (s < 0.95) return format("{:.1f} s", s);
  if (s < 120) return format("{:.0f} s", s);
  if (s < 2 * 3600) return format("{:.0f} min", s / 60);
  if (s < 48 * 3600) return tenths(s / 3600) + " h";
  return tenths(s / 86400) + " days";
}

std::string thousands(double number) {
  std::string digits = format("{:.0f}", number);
  const int first = digits.starts_with('-') ? 1 : 0;
  for (int i = int(digits.size()) - 3; i > first; i -= 3) digits.insert(size_t(i), 1, ',');
  return digits;
}

std::string number(double n) {
  if (n != 0 && std::fabs(n) < 0.095) return format("{:.2g}", n);
  return std::fabs(n) < 9.95 ? tenths(n) : thousands(n);
}

std::string counted(double n, std::string_view noun, std::string_view between) {
  const std::string digits = number(n);
  if (digits == "1") return format("1{} {}", between, noun);
  const bool hisses =
      noun == "batch" || noun.ends_with("s") || noun.ends_with("x") || noun.ends_with("sh");  // an epoch does not
  return format("{}{} {}{}", digits, between, noun, hisses ? "es" : "s");
}

std::string_view noun_of(Unit unit) {
  switch (unit) {
    case Unit::kLine:
      return "printed line";
    case Unit::kTrace:
      return "new shape";
    case Unit::kCompile:
      return "compilation";
    default:
      return to_string(unit);
  }
}

std::string each(Unit unit) { return format("every {}", noun_of(unit)); }

}  // namespace millpond::verdict
