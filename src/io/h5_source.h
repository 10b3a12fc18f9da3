// The bytes of an HDF5 file, and a cursor over a piece of them. Everything below (objects, groups, datasets) reads a
// stranger's file through these two, so no wrong offset or length in it can reach memory: it ends in an Error(kFormat)
// with file, object, byte, what was expected and what was found. Memory: a piece is copied while it is looked at, at
// most 1 MiB; nothing is kept. All pieces of a file together may not be more than eight times its size, so a file whose
// parts point at one another in a circle comes to an end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/bytes.h"
#include "millpond/error.h"

namespace millpond::io::h5 {

inline constexpr uint64_t kNowhere = ~uint64_t{0};  // HDF5's address of what is not there

class Source {
 public:
  explicit Source(const std::string& file);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& file() const { return file_; }
  uint64_t size() const { return size_; }
  bool holds(uint64_t at, uint64_t n) const { return at <= size_ && n <= size_ - at; }
  /// Exactly n bytes at `at`, straight to where they are wanted. For values, which may be large.
  void read(uint64_t at, std::byte* to, uint64_t n) const;
  /// A piece of the file's structure.
  std::shared_ptr<const std::vector<std::byte>> piece(uint64_t at, uint64_t n, std::string_view what);
  /// Structure may be read anew: the limit on all pieces together begins again.
  void refill() { left_ = size_ > kNowhere / 16 ? kNowhere / 2 : 8 * size_ + (1 << 20); }
  Error wrong(uint64_t at, std::string_view what, const std::string& expected, const std::string& found) const;
  Error wrong(const std::string& expected, const std::string& found) const;

  std::string object;  // the path that is being looked at, for errors

 private:
  std::string file_;
  int fd_ = -1;
  uint64_t size_ = 0, left_ = 0;
};

class Cursor {
 public:
  Cursor(Source& source, uint64_t at, uint64_t n, std::string_view what)
      : source_(&source), bytes_(source.piece(at, n, what)), base_(at), end_(size_t(n)), what_(what) {}

  uint64_t number(int bytes);  // little endian, up to 8
  uint8_t u8() { return uint8_t(number(1)); }
  uint16_t u16() { return uint16_t(number(2)); }
  uint32_t u32() { return uint32_t(number(4)); }
  uint64_t u64() { return number(8); }
  std::string text(uint64_t n);  // n bytes
  std::string word();            // up to a zero byte, which must be there
  void skip(uint64_t n);
  void expect(std::string_view signature);
  /// The next n bytes as a cursor of their own, which may not leave them.
  Cursor part(uint64_t n, std::string_view what);
  /// To a multiple of 8 bytes from where this cursor began.
  void align();
  void seek(uint64_t from_begin);

  uint64_t left() const { return end_ - at_; }
  uint64_t position() const { return base_ + at_; }  // in the file
  Source& source() const { return *source_; }
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const;
  void need(bool good, const std::string& expected, uint64_t found) const {
    if (!good) fail(expected, std::to_string(found));
  }

 private:
  Source* source_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
  uint64_t base_;  // of bytes_ in the file
  size_t at_ = 0, begin_ = 0, end_;
  std::string_view what_;
};

}  // namespace millpond::io::h5
