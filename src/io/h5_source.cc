#include "io/h5_source.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "io/plain_file.h"

namespace millpond::io::h5 {

namespace {
constexpr uint64_t kLargestPiece = 1 << 20;
}

Source::Source(const std::string& file) : file_(file) {
  const PlainFile opened = open_plain_file(file);
  fd_ = opened.fd;
  size_ = uint64_t(opened.size);
  refill();
}
Source::~Source() { close(fd_); }

Error Source::wrong(const std::string& expected, const std::string& found) const {
  const std::string where = object.empty() ? "the root" : object;
  return Error(Code::kFormat, format("{} is not a weight file we can read: at {} expected {}, found {}", file_, where,
                                     expected, found))
      .with("file", file_)
      .with("where", where)
      .with("expected", expected)
      .with("found", found);
}
Error Source::wrong(uint64_t at, std::string_view what, const std::string& expected, const std::string& found) const {
  const std::string where = format("byte {} ({}{}{})", at, what, object.empty() ? "" : " of ", object);
  return Error(Code::kFormat, format("{} is not a weight file we can read: at {} expected {}, found {}", file_, where,
                                     expected, found))
      .with("file", file_)
      .with("where", where)
      .with("expected", expected)
      .with("found", found);
}

void Source::read(uint64_t at, std::byte* to, uint64_t n) const {
  for (uint64_t done = 0; done < n;) {
    const ssize_t got = pread(fd_, to + done, size_t(n - done), off_t(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(Code::kFile, format("{} cannot be read: {}", file_, std::strerror(errno)));
    if (got == 0) throw wrong(at + done, "values", format("{} more bytes", n - done), "the end of the file");
    done += uint64_t(got);
  }
}

std::shared_ptr<const std::vector<std::byte>> Source::piece(uint64_t at, uint64_t n, std::string_view what) {
  if (!holds(at, n))
    throw wrong(at, what, format("{} bytes inside the file's {}", n, size_),
                at == kNowhere ? "no address" : "an end beyond it");
  if (n > kLargestPiece) throw wrong(at, what, format("at most {} bytes", kLargestPiece), format("{}", n));
  if (n + 8 > left_) throw wrong(at, what, "an end", "parts that point at one another in a circle");
  left_ -= n + 8;  // 8: pieces of nothing come to an end, too
  auto bytes = std::make_shared<std::vector<std::byte>>(size_t(n));
  read(at, bytes->data(), n);
  return bytes;
}

void Cursor::fail(const std::string& expected, const std::string& found) const {
  throw source_->wrong(position(), what_, expected, found);
}

void Cursor::skip(uint64_t n) {
  if (n > left()) fail(format("{} more bytes", n), format("{}", left()));
  at_ += size_t(n);
}

uint64_t Cursor::number(int bytes) {
  const size_t from = at_;
  skip(uint64_t(bytes));
  uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) v |= uint64_t((*bytes_)[from + size_t(i)]) << (8 * i);
  return v;
}

std::string Cursor::text(uint64_t n) {
  const size_t from = at_;
  skip(n);
  return {reinterpret_cast<const char*>(bytes_->data()) + from, size_t(n)};
}

std::string Cursor::word() {
  const char* from = reinterpret_cast<const char*>(bytes_->data()) + at_;
  const size_t n = left() == 0 ? 0 : strnlen(from, size_t(left()));  // an empty block has no address
  if (n == left()) fail("a text that ends", "one that does not");
  at_ += n + 1;
  return {from, n};
}

void Cursor::expect(std::string_view signature) {
  if (left() < signature.size() || text(signature.size()) != signature)
    fail(format("\"{}\"", signature), "something else");
}

Cursor Cursor::part(uint64_t n, std::string_view what) {
  Cursor p = *this;
  skip(n);
  p.begin_ = p.at_;
  p.end_ = at_;
  p.what_ = what;
  return p;
}

void Cursor::align() { skip((8 - (at_ - begin_) % 8) % 8); }
void Cursor::seek(uint64_t from_begin) {
  if (from_begin > end_ - begin_) fail(format("a place among {} bytes", end_ - begin_), format("{}", from_begin));
  at_ = begin_ + size_t(from_begin);
}

}  // namespace millpond::io::h5
