// Error: what went wrong, where, how much, and what to do. Thrown for a user's mistake; a bug is MP_ASSERT instead.
#pragma once
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millpond {

enum class Code { kUsage, kShape, kDType, kValue, kMemory, kFile, kFormat, kUnsupported, kInterrupted };

std::string_view to_string(Code code);

class Error : public std::exception {
 public:
  Error(Code code, std::string text) : code_(code), text_(std::move(text)) { render(); }

  /// What to do about it. Shown after the text.
  Error hint(std::string text) &&;
  Error hint(std::string text) &;
  /// A further line, a name and its text: with("layer", "dense_1").
  Error with(std::string key, std::string value) &&;
  void add(std::string key, std::string value);

  Code code() const { return code_; }
  const std::string& text() const { return text_; }
  const std::string& hint() const { return hint_; }
  const std::vector<std::pair<std::string, std::string>>& details() const { return details_; }
  /// "text; hint" on the first line, then a line for each detail.
  const char* what() const noexcept override { return rendered_.c_str(); }
  /// {"code": ..., "text": ..., "hint": ..., "details": {...}}
  std::string json() const;

 private:
  void render();
  Code code_;
  std::string text_, hint_, rendered_;
  std::vector<std::pair<std::string, std::string>> details_;
};

}  // namespace millpond
