#include "data/formats/npz.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>

#include "base/format.h"
#include "io/npy.h"

namespace millpond::data {

namespace {
// Bounds on what an archive may make us do before one value is read.
constexpr int64_t kMostMembers = 65536, kLargestDirectory = 16 << 20, kMostHeaders = 64 << 20, kHeaderRoom = 64 << 10;

Error wrong(const ByteSource& s, int64_t at, const std::string& expected, const std::string& found) {
  return Error(Code::kFormat, format("{} is not a .npz file we can read: at byte {} expected {}, found {}", s.name(),
                                     at, expected, found))
      .with("file", s.name())
      .with("where", format("byte {}", at))
      .with("expected", expected)
      .with("found", found);
}

uint64_t little(std::span<const std::byte> b, size_t at, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; ++i) v |= uint64_t(b[at + i]) << (8 * i);
  return v;
}
constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Place = 0x07064b50, kEntry = 0x02014b50,
                   kLocal = 0x04034b50;

struct Directory {
  int64_t at = 0, size = 0, entries = 0;
};

// The end of the archive names the place of its directory; what lies beyond 4 GiB has a second end before it (zip64).
Directory find_directory(const ByteSource& s) {
  const int64_t size = s.size(), tail = std::min<int64_t>(size, 22 + 65535);
  if (size < 22) throw wrong(s, 0, "a zip archive of at least 22 bytes", format("{}", size));
  std::vector<std::byte> b(static_cast<size_t>(tail));
  s.read_exactly(size - tail, b);
  size_t end = b.size() - 22;
  while (little(b, end, 4) != kEnd || end + 22 + little(b, end + 20, 2) != b.size()) {
    if (end == 0) throw wrong(s, size - 22, "the end of a zip archive", "something else: cut short, or no archive");
    --end;
  }
  const int64_t end_at = size - tail + int64_t(end);
  uint64_t entries = little(b, end + 10, 2), bytes = little(b, end + 12, 4), at = little(b, end + 16, 4);
  const bool large = entries == 0xffff || bytes == 0xffffffff || at == 0xffffffff;
  int64_t limit = end_at;
  if (large) {
    if (end_at < 20 + 56) throw wrong(s, end_at, "the end of a zip64 archive before it", "nothing");
    std::array<std::byte, 20> place;
    s.read_exactly(end_at - 20, place);
    if (little(place, 0, 4) != kEnd64Place)
      throw wrong(s, end_at - 20, "the place of a zip64 archive's end", "something else");
    const uint64_t end64 = little(place, 8, 8);
    if (end64 > uint64_t(end_at - 20 - 56)) throw wrong(s, end_at - 12, "a place inside the file", format("{}", end64));
    std::array<std::byte, 56> e;
    s.read_exactly(int64_t(end64), e);
    if (little(e, 0, 4) != kEnd64) throw wrong(s, int64_t(end64), "the end of a zip64 archive", "something else");
    entries = little(e, 32, 8);
    bytes = little(e, 40, 8);
    at = little(e, 48, 8);
    limit = int64_t(end64);
  }
  if (at > uint64_t(limit) || bytes > uint64_t(limit) - at)
    throw wrong(s, end_at, "a directory inside the file", format("{} bytes at byte {}", bytes, at));
  if (bytes > uint64_t(kLargestDirectory) || entries > uint64_t(kMostMembers))
    throw wrong(s, end_at, format("at most {} members", kMostMembers),
                format("{}, their names in {} bytes", entries, bytes));
  return {int64_t(at), int64_t(bytes), int64_t(entries)};
}

// Sizes and place of a member that do not fit 32 bits are in an extra field of it, in this order, only those that do
// not.
void read_zip64(std::span<const std::byte> extra, uint64_t& size, uint64_t& packed, uint64_t& local) {
  size_t at = 0;
  while (at + 4 <= extra.size()) {
    const size_t id = little(extra, at, 2), n = little(extra, at + 2, 2);
    at += 4;
    if (n > extra.size() - at) return;
    if (id == 1) {
      size_t p = at;
      for (uint64_t* v : {&size, &packed, &local})
        if (*v == 0xffffffff && p + 8 <= at + n) {
          *v = little(extra, p, 8);
          p += 8;
        }
      return;
    }
    at += n;
  }
}

// The header of the .npy file in a member; reads no more than it must.
io::NpyHeader read_header(ByteStream stream, int64_t size, const std::string& name, int64_t& headers) {
  std::vector<std::byte> start(size_t(std::min<int64_t>(size, 12)));
  if (stream.read(start) != start.size()) start.clear();
  if (start.size() == 12) {
    const uint64_t length = start[6] == std::byte{1} ? 10 + little(start, 8, 2) : 12 + little(start, 8, 4);
    const int64_t more = std::min<int64_t>({int64_t(length), size, kHeaderRoom}) - 12;
    headers += 12 + std::max<int64_t>(more, 0);
    if (headers > kMostHeaders)
      throw wrong(stream.source(), 0, format("headers of at most {} bytes together", kMostHeaders), "more");
    if (more > 0) {
      start.resize(size_t(12 + more));
      const size_t got = stream.read(std::span(start).subspan(12));
      start.resize(12 + got);
    }
  }
  return io::parse_npy_header(start, Bytes{size}, name);
}

void check_bools(const NpzMember& m, std::span<const std::byte> values, const std::string& file) {
  if (m.dtype != DType::kBool) return;
  for (std::byte v : values)
    if (v > std::byte{1})
      throw Error(Code::kFormat,
                  format("{}: \"{}\" has a bool that is neither 0 nor 1: {}", file, shown(m.name), uint8_t(v)))
          .with("file", file);
}
}  // namespace

Bytes NpzMember::row_bytes() const {
  Bytes b = millpond::size_of(dtype);
  for (int i = 1; i < int(shape.rank()); ++i) b = b * shape[i];
  return b;
}

NpzFile::NpzFile(SharedSource source) : source_(std::move(source)) {
  const ByteSource& s = *source_;
  const Directory d = find_directory(s);
  std::vector<std::byte> b(static_cast<size_t>(d.size));
  s.read_exactly(d.at, b);
  size_t at = 0;
  int64_t headers = 0;
  std::set<std::string> names;
  for (int64_t i = 0; i < d.entries; ++i) {
    const int64_t here = d.at + int64_t(at);
    if (b.size() - at < 46 || little(b, at, 4) != kEntry)
      throw wrong(s, here, format("entry {} of the archive's directory", i), "something else");
    const uint64_t flags = little(b, at + 8, 2), method = little(b, at + 10, 2);
    const auto crc = uint32_t(little(b, at + 16, 4));
    uint64_t packed = little(b, at + 20, 4), size = little(b, at + 24, 4), local = little(b, at + 42, 4);
    const size_t name_size = little(b, at + 28, 2), extra_size = little(b, at + 30, 2), comment = little(b, at + 32, 2);
    if (b.size() - at - 46 < name_size + extra_size + comment)
      throw wrong(s, here, "an entry inside the directory", "an end beyond it");
    std::string name(reinterpret_cast<const char*>(b.data()) + at + 46, name_size);
    read_zip64(std::span(b).subspan(at + 46 + name_size, extra_size), size, packed, local);
    at += 46 + name_size + extra_size + comment;
    if (!name.ends_with(".npy")) continue;
    const std::string full = format("{}({})", s.name(), shown(name));
    if (flags & 1) throw Error(Code::kUnsupported, format("{} is encrypted", full)).with("file", s.name());
    if (method != 0 && method != 8)
      throw Error(Code::kUnsupported,
                  format("{} is compressed by method {}; known are 0 (stored) and 8 (deflated)", full, method))
          .hint("in Python: np.savez or np.savez_compressed")
          .with("file", s.name());
    if (d.at < 30 || local > uint64_t(d.at - 30))
      throw wrong(s, here + 42, format("the place of {} inside the file", shown(name)), format("{}", local));
    std::array<std::byte, 30> head;
    s.read_exactly(int64_t(local), head);
    if (little(head, 0, 4) != kLocal)
      throw wrong(s, int64_t(local), format("the header of {}", shown(name)), "something else");
    const uint64_t begin = local + 30 + little(head, 26, 2) + little(head, 28, 2);
    if (begin > uint64_t(d.at) || packed > uint64_t(d.at) - begin)
      throw wrong(s, int64_t(local), format("{} bytes of {} before the directory", packed, shown(name)),
                  format("{}", int64_t(d.at) - int64_t(begin)));
    if (method == 0 && size != packed)
      throw wrong(s, here + 20, "one size for a stored member", format("{} and {}", packed, size));
    if (method == 8 && size / 1032 > packed + 64)
      throw wrong(s, here + 24, format("at most {} bytes out of {}", (packed + 64) * 1032, packed), format("{}", size));
    if (size > uint64_t(std::numeric_limits<int64_t>::max()))
      throw wrong(s, here + 24, "a size below 2^63", format("{}", size));
    name.resize(name.size() - 4);
    if (!names.insert(name).second) throw wrong(s, here, "each name once", format("\"{}\" again", shown(name)));
    NpzMember m;
    m.stored = method == 0;
    m.begin = int64_t(begin);
    m.packed = int64_t(packed);
    m.size = int64_t(size);
    m.crc = crc;
    const io::NpyHeader h = read_header(
        ByteStream(section_of(source_, m.begin, m.packed, full), m.stored ? Compression::kNone : Compression::kDeflate),
        m.size, full, headers);
    m.name = std::move(name);
    m.dtype = h.dtype;
    m.shape = h.shape;
    m.header = h.data_at.value;
    m.data_at = m.begin + m.header;
    members_.push_back(std::move(m));
  }
}

const NpzMember& NpzFile::member(std::string_view name) const {
  std::string known;
  for (const NpzMember& m : members_) {
    if (m.name == name) return m;
    if (known.size() < 200) known += (known.empty() ? "" : ", ") + shown(m.name);
  }
  throw Error(Code::kValue, format("{} has no array \"{}\"", source_->name(), shown(name)))
      .hint(known.empty() ? "it has none" : format("it has {}", known))
      .with("file", source_->name());
}

void NpzFile::read_rows(const NpzMember& m, int64_t first, int64_t n, std::span<std::byte> to) const {
  if (!m.stored)
    throw Error(Code::kUnsupported,
                format("\"{}\" of {} is deflated and can only be read in order", shown(m.name), source_->name()))
        .hint("in Python: np.savez instead of np.savez_compressed; or np.save, a file for each array");
  const int64_t row = m.row_bytes().value;
  if (first < 0 || n < 0 || first > m.rows() || n > m.rows() - first || int64_t(to.size()) < n * row)
    throw Error(Code::kUsage, format("rows {} to {} of {} into {} bytes", first, first + n, m.rows(), to.size()));
  source_->read_exactly(m.data_at + first * row, to.first(size_t(n * row)));
  check_bools(m, to.first(size_t(n * row)), source_->name());
}

NpzStream::NpzStream(const NpzFile& file, std::string_view member)
    : member_(file.member(member)),
      stream_(section_of(file.source(), member_.begin, member_.packed,
                         format("{}({}.npy)", file.source()->name(), shown(member_.name))),
              member_.stored ? Compression::kNone : Compression::kDeflate) {
  seek(0);
}

void NpzStream::seek(int64_t row) {
  if (row < 0 || row > member_.rows()) throw Error(Code::kUsage, format("row {} of {}", row, member_.rows()));
  row_ = row;
  whole_ = row == 0;
  crc_ = 0;
  if (!whole_) return stream_.seek(member_.header + row * member_.row_bytes().value);
  stream_.seek(0);
  std::array<std::byte, 4096> b;
  for (int64_t left = member_.header; left > 0;) {
    const auto part = std::span(b).first(size_t(std::min<int64_t>(left, int64_t(b.size()))));
    const size_t n = stream_.read(part);
    if (n == 0) break;
    crc_ = uint32_t(crc32(crc_, reinterpret_cast<const Bytef*>(b.data()), uInt(n)));
    left -= int64_t(n);
  }
}

int64_t NpzStream::read(int64_t rows, std::span<std::byte> to) {
  const int64_t row = member_.row_bytes().value;
  const int64_t n = std::min(rows, member_.rows() - row_);
  if (n < 0 || int64_t(to.size()) < n * row)
    throw Error(Code::kUsage, format("{} rows of {} bytes into {}", rows, row, to.size()));
  const std::span<std::byte> bytes = to.first(size_t(n * row));
  const auto damaged = [&](const std::string& why) {
    return Error(Code::kFormat, format("{}: row {}: {}", stream_.source().name(), row_, why))
        .with("file", stream_.source().name())
        .with("where", format("row {}", row_));
  };
  if (stream_.read(bytes) != bytes.size()) throw damaged("the archive holds fewer bytes than the array's shape needs");
  check_bools(member_, bytes, stream_.source().name());
  if (whole_) {
    for (size_t at = 0; at < bytes.size();) {
      const size_t part = std::min<size_t>(bytes.size() - at, 1u << 30);
      crc_ = uint32_t(crc32(crc_, reinterpret_cast<const Bytef*>(bytes.data() + at), uInt(part)));
      at += part;
    }
  }
  row_ += n;
  if (row_ == member_.rows() && whole_) {
    whole_ = false;  // once
    std::byte more;
    if (stream_.read({&more, 1}) != 0) throw damaged("the archive holds more bytes than it says");
    if (crc_ != member_.crc) throw damaged(format("the CRC is {:#010x}, the archive says {:#010x}", crc_, member_.crc));
  }
  return n;
}

}  // namespace millpond::data
