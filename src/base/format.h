// format: fmt's, with our own types known to it.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "millpond/bytes.h"
#include "millpond/dtype.h"
#include "millpond/shape.h"

namespace millpond {

// An object, not a function: for an argument of std, as a std::string is, the name of a function would be looked up in
// std too, and std::format found there would be as good a match.
struct Format {
  template <class... Arguments>
  std::string operator()(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    return fmt::vformat(text, fmt::make_format_args(arguments...));
  }
};
inline constexpr Format format;

}  // namespace millpond

template <class T>
  requires std::is_same_v<T, millpond::Bytes> || std::is_same_v<T, millpond::Shape> ||
           std::is_same_v<T, millpond::DType>
struct fmt::formatter<T> : fmt::formatter<fmt::string_view> {
  auto format(const T& v, fmt::format_context& c) const {
    return fmt::formatter<fmt::string_view>::format(std::string(to_string(v)), c);
  }
};
// A Shape is a range to fmt as well; this keeps fmt/ranges.h from claiming it.
template <>
struct fmt::is_range<millpond::Shape, char> : std::false_type {};
