// Where the readers of this folder get their bytes. A ByteSource is a file (or bytes in memory) read at any place with
// pread; any number of threads may read one at once, and no page of it is mapped. A ByteStream is such a source in
// order, inflated on the way when it is compressed.
// Memory: a source holds one descriptor. A stream that is not compressed holds nothing; a compressed one holds its
// input buffer and zlib's window and state (Bytes memory()), all taken when it is made.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "millpond/bytes.h"
#include "millpond/error.h"

namespace millpond::data {

/// What a reader does with a row, record, line or image it cannot read: an Error with file and position, or it goes on
/// with the next one and counts. An error of the system (a disk that fails) is always thrown.
enum class OnBad { kThrow, kSkip };

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& name() const { return name_; }
  int64_t size() const { return size_; }
  /// As many bytes as `to` holds; fewer only where the source ends. Safe from any thread.
  virtual size_t read_at(int64_t at, std::span<std::byte> to) const = 0;
  /// All of `to`, or Error(kFormat): the file is shorter than it was.
  void read_exactly(int64_t at, std::span<std::byte> to) const;

 protected:
  ByteSource(std::string name, int64_t size) : name_(std::move(name)), size_(size) {}

 private:
  std::string name_;
  int64_t size_;
};
using SharedSource = std::shared_ptr<const ByteSource>;

/// Throws Error(kFile) where the file is not there, cannot be read or is not a plain file.
SharedSource open_file(const std::string& file);
/// Borrows the bytes.
SharedSource view_bytes(std::span<const std::byte> bytes, std::string name);
/// [at, at + size) of another source, which must hold it.
SharedSource section_of(SharedSource whole, int64_t at, int64_t size, std::string name);
/// The whole file into `to`, whose memory is used again; for images, which are decoded from memory.
/// Throws Error(kFormat) beyond `limit`.
void read_file(const std::string& file, std::string& to, Bytes limit);

/// kAuto: gzip where the first two bytes say so, otherwise plain. kDeflate has no header: a member of a zip archive.
enum class Compression { kNone, kGzip, kZlib, kDeflate, kAuto };
/// "", "none", "gzip", "zlib", "auto" in any case, as tf.data spells them. Throws Error(kUsage).
Compression parse_compression(std::string_view name);

class ByteStream {
 public:
  explicit ByteStream(SharedSource source, Compression compression = Compression::kNone);
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;
  ~ByteStream();

  /// Fills `to`; fewer bytes only at the end. Error(kFormat) where compressed bytes are damaged or end too early, once
  /// the bytes before the damage have been given out.
  size_t read(std::span<std::byte> to);
  /// Of the bytes given out, inflated.
  int64_t position() const { return position_; }
  /// Free where nothing is compressed; otherwise everything up to there is inflated again.
  void seek(int64_t position);
  bool compressed() const { return inflater_ != nullptr; }
  const ByteSource& source() const { return *source_; }
  /// No more bytes than this are left: exact when plain, an upper bound (deflate's 1032:1) when compressed.
  int64_t at_most_left() const;
  Bytes memory() const;

 private:
  struct Inflater;
  size_t inflate_some(std::span<std::byte> to);
  SharedSource source_;
  std::unique_ptr<Inflater> inflater_;
  int64_t position_ = 0;
};

/// What a stranger's file says, made fit for a terminal: short, and without control characters.
std::string shown(std::string_view text);

/// What was passed over, and the first of it in words.
struct Skipped {
  int64_t count = 0;
  std::string first;  // the text of the error that would have been thrown
};

}  // namespace millpond::data
