// CSV: rows of text into columns of numbers, straight into the caller's buffers.
//
// RFC 4180: fields between delimiters, quoted fields may hold delimiters, doubled quotes and line ends; rows end with
// LF or CRLF. Beyond it: a byte order mark is passed over, empty lines are no rows, blanks around numbers are allowed,
// "nan" and "inf" are numbers of the float types. Numbers are rounded correctly (as strtod and strtof do).
//
// Memory: a buffer of CsvOptions::buffer bytes, in which a row must fit; where quotes mean something, as much again for
// texts with doubled quotes (touched only by these); a few hundred bytes for each column. Nothing is allocated while
// rows are read.
#pragma once
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/formats/source.h"

namespace millpond::data {

/// What a cell of a column becomes in memory: int64_t, float, double, bool, std::string_view.
enum class CsvType { kAuto, kBool, kInt64, kFloat32, kFloat64, kText };
std::string_view to_string(CsvType type);
constexpr size_t cell_size(CsvType t) {
  return t == CsvType::kBool ? 1 : t == CsvType::kFloat32 ? 4 : t == CsvType::kText ? sizeof(std::string_view) : 8;
}

struct CsvOptions {
  bool header = true;  // the first row holds names; otherwise they are column_0, column_1, ...
  char delimiter = ',';
  char quote = '"';                       // 0: quotes mean nothing
  std::vector<std::string> columns = {};  // the selected ones, in this order; empty: all. The label need not be named.
  std::string label = {};                 // comes last among CsvReader::columns(); empty: there is none
  std::map<std::string, CsvType> types = {};  // of columns by name; the rest is inferred
  CsvType features = CsvType::kAuto;          // of all columns but the label and those in `types`
  CsvType floats = CsvType::kFloat32;         // what an inferred column of broken numbers becomes
  int64_t infer_rows = 1000;                  // types are inferred from so many rows (of the first buffer)

  std::vector<std::string> missing = {"", "NA", "N/A", "null", "NULL"};  // texts that stand for a missing value
  double missing_float = std::numeric_limits<double>::quiet_NaN();
  std::optional<int64_t> missing_int = {};  // without one, a column with a missing value in the inferred rows is of
  std::optional<bool> missing_bool = {};    // floats, and a missing value further down is an error
  OnBad on_bad = OnBad::kThrow;             // ragged rows, wrong numbers, quotes that do not close

  Compression compression = Compression::kNone;
  Bytes buffer = Bytes{1 << 20};  // at least 4 KiB
};

struct CsvColumn {
  std::string name;
  CsvType type = CsvType::kFloat32;
  int64_t field = 0;  // which field of a row
};

/// Where a column's cells go: row r of one call lies at data + r * stride (bytes).
struct CsvSlot {
  void* data = nullptr;
  int64_t stride = 0;
};

struct CsvPosition {
  int64_t offset = 0;  // of the next row, in the (inflated) bytes
  int64_t row = 0;     // its number, without header and skipped rows
  int64_t line = 1;    // the line of the file it begins in
  int64_t skipped = 0;
};

class CsvReader {
 public:
  /// Reads the first buffer: names and types are known afterwards. Throws Error with file, line and column.
  explicit CsvReader(SharedSource source, CsvOptions options = {});
  explicit CsvReader(const std::string& file, CsvOptions options = {})
      : CsvReader(open_file(file), std::move(options)) {}
  CsvReader(CsvReader&&) noexcept;
  CsvReader& operator=(CsvReader&&) noexcept;
  ~CsvReader();

  /// The selected columns, the label last.
  const std::vector<CsvColumn>& columns() const;
  /// Its place among columns(), or -1.
  int64_t label() const;

  /// Up to `rows` rows; slots as columns(). Returns how many; 0 only at the end. It is fewer than asked only at the
  /// end, or where there are columns of text: their views point into the buffer, until the next call of anything here,
  /// so a call ends where the buffer ends.
  int64_t read(int64_t rows, std::span<const CsvSlot> slots);
  /// Passes over rows as read() would; returns how many there were.
  int64_t skip(int64_t rows);

  /// Of the next row. restore() makes read() go on there; a reader of the same file and options made anew will do.
  CsvPosition position() const;
  void restore(const CsvPosition& position);
  const Skipped& skipped() const;
  Bytes memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millpond::data
