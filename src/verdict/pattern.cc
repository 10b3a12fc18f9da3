#include "verdict/pattern.h"

#include <regex>

namespace millpond::verdict {

struct Pattern::Compiled {
  std::regex regex;
};

Pattern::Pattern(const char* expression, Case letters)
    : compiled_(new Compiled{std::regex(expression, letters == Case::kIgnored ? std::regex::ECMAScript | std::regex::icase : std::regex::ECMAScript)}) {}

Pattern::~Pattern() = default;

bool Pattern::in(const std::string& text) const { return std::regex_search(text, compiled_->regex); }

}  // namespace millpond::verdict
