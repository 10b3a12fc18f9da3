#include "data/formats/text.h"

#include <cstring>

#include "base/format.h"

namespace millpond::data {

struct LineReader::Impl {
  TextOptions options;
  ByteStream stream;
  std::unique_ptr<char[]> buffer;
  size_t capacity, begin = 0, fill = 0;
  int64_t base = 0;  // of buffer[0] in the bytes of the stream
  int64_t line = 0;
  bool at_end = false;
  Skipped skipped;

  Impl(SharedSource source, const TextOptions& o) : options(o), stream(std::move(source), o.compression) {
    if (o.max_line < Bytes{1} || o.max_line > Bytes{int64_t{1} << 30})
      throw Error(Code::kUsage, format("max_line is {}; it may be from 1 byte to 1 GiB", o.max_line));
    capacity = size_t(o.max_line.value) + (64 << 10);
    buffer = std::make_unique_for_overwrite<char[]>(capacity);
  }
  const std::string& file() const { return stream.source().name(); }

  void refill() {
    if (begin > 0) std::memmove(buffer.get(), buffer.get() + begin, fill - begin);
    base += int64_t(begin);
    fill -= begin;
    begin = 0;
    const size_t got = stream.read(std::as_writable_bytes(std::span(buffer.get() + fill, capacity - fill)));
    fill += got;
    at_end = got == 0;
  }

  Error too_long() const {
    const std::string where = format("line {}, byte {}", line + 1, base + int64_t(begin));
    return Error(Code::kFormat,
                 format("{}: {}: expected a line of at most {}, found more", file(), where, options.max_line))
        .hint("is it a text file? If so, give the option max_line more bytes")
        .with("file", file())
        .with("where", where);
  }

  bool next(std::string_view& out) {
    size_t looked = 0;  // bytes of the line without an end
    for (;;) {
      const char* from = buffer.get() + begin;
      const char* end = static_cast<const char*>(std::memchr(from + looked, '\n', fill - begin - looked));
      if (!end && !at_end && fill - begin <= size_t(options.max_line.value) + 1) {  // + 1: a CR may follow
        looked = fill - begin;
        refill();
        continue;
      }
      if (!end && at_end && begin == fill) return false;
      size_t size = size_t((end ? end : buffer.get() + fill) - from);
      const size_t step = size + (end != nullptr);
      if (end && size > 0 && end[-1] == '\r') --size;
      if (size <= size_t(options.max_line.value)) {
        out = {from, size};
        begin += step;
        ++line;
        return true;
      }
      if (options.on_bad == OnBad::kThrow) throw too_long();
      if (skipped.count++ == 0) skipped.first = too_long().text();
      begin += step;
      ++line;
      while (!end && !at_end) {
        refill();
        end = static_cast<const char*>(std::memchr(buffer.get(), '\n', fill));
        begin = end ? size_t(end - buffer.get()) + 1 : fill;
      }
      looked = 0;
    }
  }
};

LineReader::LineReader(SharedSource source, TextOptions options)
    : impl_(std::make_unique<Impl>(std::move(source), options)) {}
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

bool LineReader::next(std::string_view& line) { return impl_->next(line); }
const Skipped& LineReader::skipped() const { return impl_->skipped; }
Bytes LineReader::memory() const { return Bytes{int64_t(impl_->capacity)} + impl_->stream.memory(); }
TextPosition LineReader::position() const {
  return {impl_->base + int64_t(impl_->begin), impl_->line, impl_->skipped.count};
}
void LineReader::restore(const TextPosition& p) {
  Impl& m = *impl_;
  m.stream.seek(p.offset);
  m.begin = m.fill = 0;
  m.base = m.stream.position();
  m.at_end = false;
  m.line = p.line;
  m.skipped.count = p.skipped;
  if (p.skipped == 0) m.skipped.first.clear();
}

}  // namespace millpond::data
