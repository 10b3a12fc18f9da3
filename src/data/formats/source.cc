#include "data/formats/source.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/format.h"
#include "io/plain_file.h"

namespace millpond::data {

namespace {
class Descriptor {
 public:
  explicit Descriptor(const std::string& file) {
    const io::PlainFile opened = io::open_plain_file(file);
    fd_ = opened.fd;
    size_ = opened.size;
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int64_t size() const { return size_; }
  size_t read_at(int64_t at, std::span<std::byte> to, const std::string& name) const {
    size_t done = 0;
    while (done < to.size()) {
      const ssize_t n = pread(fd_, to.data() + done, to.size() - done, off_t(at) + off_t(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        throw Error(Code::kFile, format("{} cannot be read: {}", name, std::strerror(errno)))
            .with("file", name)
            .with("where", format("byte {}", at + int64_t(done)));
      if (n == 0) break;
      done += size_t(n);
    }
    return done;
  }

 private:
  int fd_;
  int64_t size_ = 0;
};

class FileSource final : public ByteSource {
 public:
  FileSource(const std::string& file, std::unique_ptr<Descriptor> descriptor)
      : ByteSource(file, descriptor->size()), descriptor_(std::move(descriptor)) {}
  size_t read_at(int64_t at, std::span<std::byte> to) const override { return descriptor_->read_at(at, to, name()); }

 private:
  std::unique_ptr<Descriptor> descriptor_;
};

class ViewSource final : public ByteSource {
 public:
  ViewSource(std::span<const std::byte> bytes, std::string name)
      : ByteSource(std::move(name), int64_t(bytes.size())), bytes_(bytes) {}
  size_t read_at(int64_t at, std::span<std::byte> to) const override {
    if (at < 0 || at >= size()) return 0;
    const size_t n = std::min(to.size(), bytes_.size() - size_t(at));
    if (n) std::memcpy(to.data(), bytes_.data() + at, n);
    return n;
  }

 private:
  std::span<const std::byte> bytes_;
};

class SectionSource final : public ByteSource {
 public:
  SectionSource(SharedSource whole, int64_t at, int64_t size, std::string name)
      : ByteSource(std::move(name), size), whole_(std::move(whole)), at_(at) {}
  size_t read_at(int64_t at, std::span<std::byte> to) const override {
    if (at < 0 || at >= size()) return 0;
    return whole_->read_at(at_ + at, to.first(size_t(std::min<int64_t>(int64_t(to.size()), size() - at))));
  }

 private:
  SharedSource whole_;
  int64_t at_;
};

Error shorter(const std::string& name, int64_t at, size_t wanted) {
  return Error(Code::kFormat,
               format("{} became shorter while it was read: {} bytes are missing at byte {}", name, wanted, at))
      .with("file", name)
      .with("where", format("byte {}", at));
}
}  // namespace

void ByteSource::read_exactly(int64_t at, std::span<std::byte> to) const {
  const size_t got = read_at(at, to);
  if (got != to.size()) throw shorter(name(), at + int64_t(got), to.size() - got);
}

SharedSource open_file(const std::string& file) {
  return std::make_shared<FileSource>(file, std::make_unique<Descriptor>(file));
}
SharedSource view_bytes(std::span<const std::byte> bytes, std::string name) {
  return std::make_shared<ViewSource>(bytes, std::move(name));
}
SharedSource section_of(SharedSource whole, int64_t at, int64_t size, std::string name) {
  MP_ASSERT(at >= 0 && size >= 0 && at <= whole->size() && size <= whole->size() - at);
  return std::make_shared<SectionSource>(std::move(whole), at, size, std::move(name));
}

void read_file(const std::string& file, std::string& to, Bytes limit) {
  const Descriptor d(file);
  if (d.size() > limit.value)
    throw Error(Code::kFormat,
                format("{} is {} long, more than the {} allowed for one file", file, Bytes{d.size()}, limit))
        .with("file", file)
        .hint("leave it out, or raise the limit");
  to.resize(size_t(d.size()));
  const size_t got = d.read_at(0, std::as_writable_bytes(std::span(to.data(), to.size())), file);
  if (got != to.size()) throw shorter(file, int64_t(got), to.size() - got);
}

Compression parse_compression(std::string_view name) {
  std::string low(name);
  for (char& c : low) c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  if (low.empty() || low == "none") return Compression::kNone;
  if (low == "gzip") return Compression::kGzip;
  if (low == "zlib") return Compression::kZlib;
  if (low == "auto") return Compression::kAuto;
  throw Error(Code::kUsage, format("\"{}\" is no compression", shown(name))).hint("known: none, gzip, zlib, auto");
}

std::string shown(std::string_view text) {
  std::string out;
  for (unsigned char c : text.substr(0, 40))
    out += c >= 0x20 && c < 0x7f ? std::string(1, char(c)) : format("\\x{:02x}", c);
  return out + (text.size() > 40 ? "..." : "");
}

// ---- streams ----

struct ByteStream::Inflater {
  static constexpr size_t kRoom = 64 << 10;
  z_stream z{};
  Compression kind;
  std::unique_ptr<std::byte[]> in = std::make_unique<std::byte[]>(kRoom);
  int64_t next_at = 0;  // of the source: what follows the bytes in `in`
  bool between = true;  // no member has begun
  bool finished = false;
  std::string broken;  // why no more bytes can come

  explicit Inflater(Compression k) : kind(k) {
    if (inflateInit2(&z, bits()) != Z_OK) throw Error(Code::kMemory, "zlib cannot get the memory for its window");
  }
  ~Inflater() { inflateEnd(&z); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  int bits() const { return kind == Compression::kGzip ? 15 + 16 : kind == Compression::kZlib ? 15 : -15; }
  void rewind() {
    inflateReset2(&z, bits());
    z.avail_in = 0;
    next_at = 0;
    between = true;
    finished = false;
    broken.clear();
  }
};

ByteStream::ByteStream(SharedSource source, Compression compression) : source_(std::move(source)) {
  if (compression == Compression::kAuto) {
    std::array<std::byte, 2> start{};
    const bool gzip = source_->read_at(0, start) == 2 && start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b};
    compression = gzip ? Compression::kGzip : Compression::kNone;
  }
  if (compression != Compression::kNone) inflater_ = std::make_unique<Inflater>(compression);
}
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;
ByteStream::~ByteStream() = default;

Bytes ByteStream::memory() const {
  // zlib: inflate's state is some 7 KiB, its window 32 KiB.
  return inflater_ ? Bytes{int64_t(sizeof(Inflater) + Inflater::kRoom + (40 << 10))} : Bytes{0};
}

int64_t ByteStream::at_most_left() const {
  if (!inflater_) return std::max<int64_t>(source_->size() - position_, 0);
  const int64_t packed = source_->size() - inflater_->next_at + int64_t(inflater_->z.avail_in) + 64;
  return packed > std::numeric_limits<int64_t>::max() / 1032 ? std::numeric_limits<int64_t>::max() : packed * 1032;
}

size_t ByteStream::read(std::span<std::byte> to) {
  if (!inflater_) {
    const size_t n = source_->read_at(position_, to);
    position_ += int64_t(n);
    return n;
  }
  size_t done = 0;
  while (done < to.size()) {
    const size_t n = inflate_some(to.subspan(done));
    if (n == 0) break;
    done += n;
  }
  position_ += int64_t(done);
  if (done == 0 && !to.empty() && !inflater_->broken.empty())
    throw Error(Code::kFormat, format("{}: {}", source_->name(), inflater_->broken))
        .with("file", source_->name())
        .with("where", format("byte {} of the file, byte {} of what it holds",
                              inflater_->next_at - int64_t(inflater_->z.avail_in), position_));
  return done;
}

// Some bytes; 0 when there are no more, or what follows is damaged.
size_t ByteStream::inflate_some(std::span<std::byte> to) {
  Inflater& f = *inflater_;
  f.z.next_out = reinterpret_cast<Bytef*>(to.data());
  f.z.avail_out = uInt(std::min<size_t>(to.size(), 1u << 30));
  const uInt room = f.z.avail_out;
  while (f.z.avail_out == room && !f.finished && f.broken.empty()) {
    if (f.z.avail_in == 0) {
      const size_t n = source_->read_at(f.next_at, {f.in.get(), Inflater::kRoom});
      f.next_at += int64_t(n);
      f.z.next_in = reinterpret_cast<Bytef*>(f.in.get());
      f.z.avail_in = uInt(n);
    }
    if (f.between) {
      if (f.z.avail_in == 0 && f.next_at > 0 && f.kind == Compression::kGzip) {
        f.finished = true;
        break;
      }
      f.between = false;
    }
    const int result =
        inflate(&f.z, Z_NO_FLUSH);  // without input, too: zlib may hold back what did not fit the last time
    if (result == Z_STREAM_END) {
      if (f.kind == Compression::kGzip) {  // another member may follow: `cat a.gz b.gz`
        inflateReset(&f.z);
        f.between = true;
      } else if (f.z.avail_in > 0 || f.next_at < source_->size()) {
        f.broken = "bytes follow the end of the compressed ones";
      } else {
        f.finished = true;
      }
    } else if (result == Z_MEM_ERROR) {
      throw Error(Code::kMemory, "zlib cannot get the memory for its window");
    } else if (result == Z_BUF_ERROR) {
      if (f.z.avail_in == 0) f.broken = "the compressed bytes end too early";
    } else if (result != Z_OK) {
      f.broken = format("the compressed bytes are damaged ({})", f.z.msg ? f.z.msg : "zlib");
    }
  }
  return room - f.z.avail_out;
}

void ByteStream::seek(int64_t position) {
  position = std::max<int64_t>(position, 0);
  if (!inflater_) {
    position_ = std::min(position, source_->size());
    return;
  }
  if (position < position_) {
    inflater_->rewind();
    position_ = 0;
  }
  std::array<std::byte, 16384> drop;
  while (position_ < position)
    if (read(std::span(drop).first(size_t(std::min<int64_t>(int64_t(drop.size()), position - position_)))) == 0) break;
}

}  // namespace millpond::data
