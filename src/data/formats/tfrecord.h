// TFRecord files, read and written.
//
//   length (8 bytes, little endian) | masked CRC32C of the length | the record | masked CRC32C of the record | ...
//
// The whole stream may be gzip or zlib. Memory: one buffer, which grows up to the largest record met (at most
// RecordOptions::max_record plus 64 KiB), and never beyond twice what the file has proven to hold; a compressed
// stream's own besides. Nothing is allocated for a record once the buffer fits.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/formats/source.h"

namespace millpond::data {

struct RecordOptions {
  Compression compression = Compression::kNone;
  OnBad on_bad = OnBad::kThrow;  // kSkip: a record with a wrong CRC is passed over; where the length itself is wrong,
                                 // the next place where a record can begin is looked for
  bool check_crc = true;         // of the records; the CRC of a length is always checked
  Bytes max_record = Bytes{int64_t{256} << 20};
  Bytes buffer = Bytes{256 << 10};
};

struct RecordPosition {
  int64_t offset = 0;  // of the next record, in the (inflated) bytes
  int64_t record = 0;  // its number, skipped ones not counted
  int64_t skipped = 0;
};

class RecordReader {
 public:
  explicit RecordReader(SharedSource source, RecordOptions options = {});
  explicit RecordReader(const std::string& file, RecordOptions options = {}) : RecordReader(open_file(file), options) {}
  RecordReader(RecordReader&&) noexcept;
  RecordReader& operator=(RecordReader&&) noexcept;
  ~RecordReader();

  /// The next record, or false at the end. The view holds until the next call. Errors have file, record and byte.
  bool next(std::span<const std::byte>& record);
  RecordPosition position() const;
  void restore(const RecordPosition& position);
  const Skipped& skipped() const;
  const std::string& file() const;
  Bytes memory() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Appends to a new file. Without close() the file is removed: half a file is no file.
class RecordWriter {
 public:
  /// kNone, kGzip or kZlib; `level` is zlib's.
  explicit RecordWriter(const std::string& file, Compression compression = Compression::kNone, int level = 6);
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;
  ~RecordWriter();
  void write(std::span<const std::byte> record);
  void write(std::string_view record) { write(std::as_bytes(std::span(record.data(), record.size()))); }
  int64_t records() const;
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millpond::data
