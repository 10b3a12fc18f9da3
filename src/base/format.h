// format: fmt's, with our own types known to it.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "millpond/bytes.h"
#include "millpond/dtype.h"
#include "millpond/shape.h"

namespace millpond {
using fmt::format;
}

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
