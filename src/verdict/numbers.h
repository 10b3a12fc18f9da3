// Numbers and units as a person reads them. One function for one number: what the sentence says, forecast, table and
// JSON say too.
#pragma once
#include <string>
#include <string_view>

#include "verdict/evidence.h"

namespace millpond::verdict {

std::string duration(double seconds);  // "5 ms", "40 s", "12 min", "2.4 h", "12 days"
std::string thousands(double number);  // "1,310", rounded
std::string number(double n);          // "3", "2.5", "5,000": never "5e+03"
/// "1 tensor", "3 tensors", "2 batches", "1,310 epochs"; with " more" between them "7 more epochs".
std::string counted(double n, std::string_view noun, std::string_view between = "");

std::string_view noun_of(Unit unit);  // "epoch", "printed line", "new shape": what can be counted
std::string each(Unit unit);          // "every epoch", "every printed line"

}  // namespace millpond::verdict
