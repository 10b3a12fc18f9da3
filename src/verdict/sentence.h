// The answer in plain words.
#pragma once
#include <string>

#include "verdict/case.h"

namespace millpond::verdict {

std::string sentence(const Case& c, const Verdict& verdict);

std::string duration(double seconds);  // "3 h", "40 s", "12 days"
std::string thousands(double number);  // "1,310"

}  // namespace millpond::verdict
