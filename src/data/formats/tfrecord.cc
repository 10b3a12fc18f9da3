#include "data/formats/tfrecord.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/format.h"
#include "io/atomic_file.h"

namespace millpond::data {

// ---- reading ----

namespace {
uint64_t load64(const std::byte* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
uint32_t load32(const std::byte* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

constexpr size_t kHead = 12, kTail = 4;  // length and its CRC; the record's CRC
constexpr size_t kLeastBuffer = 4 << 10;
}  // namespace

struct RecordReader::Impl {
  RecordOptions options;
  ByteStream stream;
  std::unique_ptr<std::byte[]> buffer;
  size_t capacity = 0, begin = 0, fill = 0;
  int64_t base = 0;  // of buffer[0] in the bytes of the stream
  int64_t record = 0;
  Skipped skipped;

  Impl(SharedSource source, const RecordOptions& o) : options(o), stream(std::move(source), o.compression) {
    if (o.max_record < Bytes{0} || o.max_record > Bytes{int64_t{1} << 40})
      throw Error(Code::kUsage, format("max_record is {}; it may be up to 1 TiB", o.max_record));
    capacity = size_t(std::clamp<int64_t>(o.buffer.value, kLeastBuffer, int64_t{1} << 30));
    buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
  }

  const std::string& file() const { return stream.source().name(); }
  int64_t offset() const { return base + int64_t(begin); }
  size_t held() const { return fill - begin; }
  const std::byte* at() const { return buffer.get() + begin; }

  void to_front() {
    if (begin == 0) return;
    std::memmove(buffer.get(), at(), held());
    base += int64_t(begin);
    fill -= begin;
    begin = 0;
  }
  // At least n bytes from `begin` on, if the stream has them. The buffer is doubled only when the bytes for it have
  // come: a length that lies costs nothing.
  bool ensure(size_t n) {
    while (held() < n) {
      if (begin > 0 && begin + n > capacity) to_front();
      if (fill == capacity) {
        const size_t larger =
            std::max(std::min(capacity * 2, size_t(options.max_record.value) + (64 << 10)), capacity + kLeastBuffer);
        auto wider = std::make_unique_for_overwrite<std::byte[]>(larger);
        std::memcpy(wider.get(), at(), held());
        base += int64_t(begin);
        fill -= begin;
        begin = 0;
        buffer = std::move(wider);
        capacity = larger;
      }
      const size_t got = stream.read({buffer.get() + fill, capacity - fill});
      if (got == 0) return false;
      fill += got;
    }
    return true;
  }
  // Goes on n bytes further, which need not be in the buffer.
  bool pass(int64_t n) {
    while (n > 0) {
      if (held() == 0) {
        base += int64_t(begin);
        begin = fill = 0;
        fill = stream.read({buffer.get(), capacity});
        if (fill == 0) return false;
      }
      const auto step = size_t(std::min<int64_t>(n, int64_t(held())));
      begin += step;
      n -= int64_t(step);
    }
    return true;
  }

  Error wrong(int64_t byte, const std::string& expected, const std::string& found) const {
    const std::string where = format("record {}, byte {}", record + skipped.count, byte);
    return Error(Code::kFormat, format("{}: {}: expected {}, found {}", file(), where, expected, found))
        .hint(stream.compressed() || record + skipped.count > 0
                  ? "skip_bad_records passes over such records and counts them"
                  : "is it a TFRecord file, and is it compressed (compression = gzip or zlib)?")
        .with("file", file())
        .with("where", where)
        .with("expected", expected)
        .with("found", found);
  }
  // Thrown, or counted.
  void bad(Error e) {
    if (options.on_bad == OnBad::kThrow) throw e;
    if (skipped.count++ == 0) skipped.first = e.text();
  }
  Error cut(const std::string& of) const {
    return wrong(base + int64_t(fill), of,
                 format("the end of the {}, {} bytes after the record's begin",
                        stream.compressed() ? "inflated bytes" : "file", held()));
  }

  bool head_is_good() const { return mask_crc(crc32c({at(), 8})) == load32(at() + 8); }

  // A damaged length: looks for the next place that can begin a record.
  void find_head() {
    ++begin;
    while (ensure(kHead)) {
      if (head_is_good()) return;
      ++begin;
    }
    begin = fill;
  }

  bool next(std::span<const std::byte>& out) {
    for (;;) {
      try {
        if (!ensure(1)) return false;
        if (!ensure(kHead)) {
          bad(cut("a record's length and its CRC, 12 bytes"));
          begin = fill;
          return false;
        }
        if (!head_is_good()) {
          bad(wrong(offset() + 8, format("the CRC {:#010x} of the length", mask_crc(crc32c({at(), 8}))),
                    format("{:#010x}", load32(at() + 8))));
          find_head();
          continue;
        }
        const uint64_t length = load64(at());
        const int64_t left = stream.at_most_left();
        const int64_t there = left > (int64_t{1} << 62) ? left : left + int64_t(held());
        if (length > uint64_t(there) || there - int64_t(length) < int64_t(kHead + kTail)) {
          bad(wrong(offset(), format("a record of {} bytes and its CRC", length),
                    format("the end of the file, {} bytes after the length", there - int64_t(kHead))));
          find_head();
          continue;
        }
        if (length > uint64_t(options.max_record.value)) {
          bad(wrong(offset(), format("a record of at most {} (max_record)", options.max_record),
                    format("{}", Bytes{int64_t(length)}))
                  .hint("give the option max_record more bytes, or pass over such records with skip_bad_records"));
          if (!pass(int64_t(length) + int64_t(kHead + kTail))) return false;
          continue;
        }
        const size_t size = kHead + size_t(length) + kTail;
        if (!ensure(size)) {
          bad(cut(format("a record of {} bytes and its CRC", length)));
          find_head();
          continue;
        }
        const std::span<const std::byte> body(at() + kHead, size_t(length));
        if (options.check_crc) {
          const uint32_t crc = mask_crc(crc32c(body)), stored = load32(at() + kHead + length);
          if (crc != stored) {
            bad(wrong(offset() + int64_t(kHead), format("a record of {} bytes with the CRC {:#010x}", length, stored),
                      format("{:#010x}", crc)));
            begin += size;
            continue;
          }
        }
        begin += size;
        ++record;
        out = body;
        return true;
      } catch (const Error& e) {
        // Compressed bytes that are damaged: nothing behind the damage can be read.
        if (e.code() != Code::kFormat || options.on_bad == OnBad::kThrow || !stream.compressed()) throw;
        if (skipped.count++ == 0) skipped.first = e.text();
        begin = fill;
        return false;
      }
    }
  }
};

RecordReader::RecordReader(SharedSource source, RecordOptions options)
    : impl_(std::make_unique<Impl>(std::move(source), options)) {}
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader& RecordReader::operator=(RecordReader&&) noexcept = default;
RecordReader::~RecordReader() = default;

bool RecordReader::next(std::span<const std::byte>& record) { return impl_->next(record); }
const Skipped& RecordReader::skipped() const { return impl_->skipped; }
const std::string& RecordReader::file() const { return impl_->file(); }
Bytes RecordReader::memory() const { return Bytes{int64_t(impl_->capacity)} + impl_->stream.memory(); }
RecordPosition RecordReader::position() const { return {impl_->offset(), impl_->record, impl_->skipped.count}; }
void RecordReader::restore(const RecordPosition& p) {
  Impl& m = *impl_;
  m.stream.seek(p.offset);
  m.begin = m.fill = 0;
  m.base = m.stream.position();
  m.record = p.record;
  m.skipped.count = p.skipped;
  if (p.skipped == 0) m.skipped.first.clear();
}

// ---- writing ----

struct RecordWriter::Impl {
  static constexpr size_t kRoom = 64 << 10;
  std::string name;
  io::AtomicFile file;
  bool compressed;
  z_stream z{};
  std::unique_ptr<std::byte[]> buffer = std::make_unique<std::byte[]>(kRoom);
  size_t fill = 0;
  int64_t records = 0;
  bool closed = false;

  Impl(const std::string& f, Compression c, int level) : name(f), file(f), compressed(c != Compression::kNone) {
    if (c != Compression::kNone && c != Compression::kGzip && c != Compression::kZlib)
      throw Error(Code::kUsage, format("{}: TFRecord files are written plain, gzip or zlib", f));
    if (compressed && deflateInit2(&z, std::clamp(level, -1, 9), Z_DEFLATED, c == Compression::kGzip ? 31 : 15, 9,
                                   Z_DEFAULT_STRATEGY) != Z_OK)
      throw Error(Code::kMemory, "zlib cannot get the memory for its window");
  }
  ~Impl() {
    if (compressed) deflateEnd(&z);
  }
  void flush() {
    file.write({buffer.get(), fill});
    fill = 0;
  }
  void put(std::span<const std::byte> bytes) {
    if (compressed) return deflate_all(bytes, Z_NO_FLUSH);
    if (bytes.size() > kRoom - fill) flush();
    if (bytes.size() > kRoom) return file.write(bytes);
    if (!bytes.empty()) std::memcpy(buffer.get() + fill, bytes.data(), bytes.size());
    fill += bytes.size();
  }
  void deflate_all(std::span<const std::byte> bytes, int mode) {
    z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    size_t left = bytes.size();
    int result = Z_OK;
    do {
      if (z.avail_in == 0) {
        z.avail_in = uInt(std::min<size_t>(left, 1u << 30));
        left -= z.avail_in;
      }
      z.next_out = reinterpret_cast<Bytef*>(buffer.get() + fill);
      z.avail_out = uInt(kRoom - fill);
      result = deflate(&z, left ? Z_NO_FLUSH : mode);
      MP_ASSERT(result != Z_STREAM_ERROR);
      fill = kRoom - z.avail_out;
      if (fill == kRoom) flush();
    } while (z.avail_in > 0 || left > 0 || (mode == Z_FINISH && result != Z_STREAM_END));
  }
};

RecordWriter::RecordWriter(const std::string& file, Compression compression, int level)
    : impl_(std::make_unique<Impl>(file, compression, level)) {}
RecordWriter::RecordWriter(RecordWriter&&) noexcept = default;
RecordWriter& RecordWriter::operator=(RecordWriter&&) noexcept = default;
RecordWriter::~RecordWriter() = default;
int64_t RecordWriter::records() const { return impl_->records; }

void RecordWriter::write(std::span<const std::byte> record) {
  Impl& m = *impl_;
  if (m.closed) throw Error(Code::kUsage, format("{} is closed already", m.name));
  std::array<std::byte, kHead> head;
  const uint64_t length = record.size();
  std::memcpy(head.data(), &length, 8);
  const uint32_t head_crc = mask_crc(crc32c(std::span(head).first(8))), crc = mask_crc(crc32c(record));
  std::memcpy(head.data() + 8, &head_crc, 4);
  m.put(head);
  m.put(record);
  m.put(std::as_bytes(std::span(&crc, 1)));
  ++m.records;
}

void RecordWriter::close() {
  Impl& m = *impl_;
  if (m.closed) return;
  if (m.compressed) m.deflate_all({}, Z_FINISH);
  m.flush();
  m.file.commit();
  m.closed = true;
}

}  // namespace millpond::data
