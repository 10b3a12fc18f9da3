// Lines of text, ended by LF or CRLF, without their ends; the last line needs none. Gzip is inflated on the way.
// Memory: one buffer of TextOptions::max_line plus 64 KiB; nothing is allocated while lines are read.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/formats/source.h"

namespace millpond::data {

struct TextOptions {
  Compression compression = Compression::kAuto;
  Bytes max_line = Bytes{1 << 20};
  OnBad on_bad = OnBad::kThrow;  // lines longer than that
};

struct TextPosition {
  int64_t offset = 0;  // of the next line, in the (inflated) bytes
  int64_t line = 0;    // its number from 0, skipped ones counted
  int64_t skipped = 0;
};

class LineReader {
 public:
  explicit LineReader(SharedSource source, TextOptions options = {});
  explicit LineReader(const std::string& file, TextOptions options = {}) : LineReader(open_file(file), options) {}
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  /// The next line, or false at the end. The view holds until the next call.
  bool next(std::string_view& line);
  TextPosition position() const;
  void restore(const TextPosition& position);
  const Skipped& skipped() const;
  Bytes memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millpond::data
