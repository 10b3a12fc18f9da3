#include "verdict/note_values.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace millpond::verdict {

using nlohmann::json;

std::string text_of(const json& j, const char* key) {
  const auto it = j.find(key);
  return it != j.end() && it->is_string() ? it->get<std::string>() : "";
}

std::optional<double> maybe_number(const json& j, const char* key) {
  constexpr double kMostNumber = 1e18;
  const auto it = j.find(key);
  if (it == j.end() || !it->is_number()) return {};
  return std::clamp(it->get<double>(), -kMostNumber, kMostNumber);
}

double number_of(const json& j, const char* key) { return maybe_number(j, key).value_or(0); }

bool flag_of(const json& j, const char* key, bool otherwise) {
  const auto it = j.find(key);
  return it != j.end() && it->is_boolean() ? it->get<bool>() : otherwise;
}

const json& list_of(const json& j, const char* key) {
  static const json none = json::array();
  const auto it = j.find(key);
  return it != j.end() && it->is_array() ? *it : none;
}

Place place_of(const json& j) {
  constexpr size_t kMostLine =
      400;  // of a line of source: regular expressions look at it, and go as deep as it is long
  return {text_of(j, "file"), text_of(j, "function"), text_of(j, "text").substr(0, kMostLine),
          int(std::clamp(number_of(j, "line"), 0.0, 1e9))};
}

}  // namespace millpond::verdict
