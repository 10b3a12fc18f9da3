// Values out of a note, which may hold anything: what is not there, or of another type, is empty.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "verdict/verdict.h"

namespace millpond::verdict {

std::string text_of(const nlohmann::json& j, const char* key);
std::optional<double> maybe_number(const nlohmann::json& j, const char* key);
double number_of(const nlohmann::json& j, const char* key);
bool flag_of(const nlohmann::json& j, const char* key, bool otherwise = false);
const nlohmann::json& list_of(const nlohmann::json& j, const char* key);
/// Of the keys file, function, text and line.
Place place_of(const nlohmann::json& j);

}  // namespace millpond::verdict
