// Numbers on the command line, refused in words: CLI11's own checks answer "not in range 2.22507e-308 to 1.79769e+308".
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/format.h"

namespace millpond::cli {

/// A whole number of at least `least`.
inline CLI::Validator at_least(int64_t least) {
  return CLI::Validator(
      [least](std::string& text) {
        int64_t value = 0;
        return CLI::detail::lexical_cast(text, value) && value >= least
                   ? std::string()
                   : format("{} is not a whole number of at least {}", text, least);
      },
      least > 0 ? "POSITIVE" : "NONNEGATIVE");
}

}  // namespace millpond::cli
