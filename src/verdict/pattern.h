// Pattern: a regular expression. <regex> takes seconds to compile; here it is compiled once for all that only ask "is it in?".
#pragma once
#include <memory>
#include <string>

namespace millpond::verdict {

class Pattern {
 public:
  enum class Case { kMatters, kIgnored };
  explicit Pattern(const char* expression, Case letters = Case::kMatters);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  bool in(const std::string& text) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace millpond::verdict
