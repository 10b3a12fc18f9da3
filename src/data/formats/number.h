// Numbers out of text, correctly rounded (to nearest, ties to even), without locale and without allocation.
// A number ends at the first byte that cannot belong to it; the bytes behind the text must be readable up to kSlack and
// the text must be followed by a byte that no number holds (a delimiter, a line end).
#pragma once
#include <cstddef>
#include <cstdint>

namespace millpond::data {

/// So many bytes behind the last one of a text are read (and not used).
inline constexpr size_t kSlack = 16;

/// The end of the number, or nullptr: no number is here, or it does not fit the type (int64).
/// Blanks are not passed over. Float: digits, point, exponent, sign; "inf", "infinity", "nan" in any case.
const char* parse_number(const char* text, int64_t& value);
const char* parse_number(const char* text, float& value);
const char* parse_number(const char* text, double& value);

}  // namespace millpond::data
