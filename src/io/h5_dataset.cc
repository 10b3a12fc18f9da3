#include "io/h5_dataset.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <span>

#include "base/format.h"
#include "io/h5_filters.h"

namespace millpond::io::h5 {

namespace {
constexpr uint64_t kMostValues = uint64_t{1} << 59;  // of at most 8 bytes each: no product below can overflow

const Message& the(Source& source, const std::vector<Message>& messages, MessageType type, const char* name) {
  const Message* m = find(messages, type);
  if (!m) throw source.wrong(format("a dataset with a {}", name), "none");
  if (m->shared) throw source.wrong(format("a {} of its own", name), "a shared one");
  return *m;
}

Shape parse_space(Cursor c) {
  const uint8_t version = c.u8();
  c.need(version == 1 || version == 2, "a dataspace of version 1 or 2", version);
  const int rank = c.u8();
  c.skip(1);
  const uint8_t kind = version == 2 ? c.u8() : (c.skip(5), rank > 0);
  if (kind > 1) c.fail("values", "none");
  if (rank > Shape::kMaxRank) c.fail(format("at most {} dimensions", Shape::kMaxRank), format("{}", rank));
  std::array<int64_t, Shape::kMaxRank> dims{};
  uint64_t values = 1;
  for (int i = 0; i < rank; ++i) {
    const uint64_t d = c.u64();
    if (d >= kMostValues || (d > 0 && values > kMostValues / d))
      c.fail("less than 2^59 values", format("{} in dimension {}", d, i));
    values *= std::max<uint64_t>(d, 1);
    dims[size_t(i)] = int64_t(d);
  }
  return Shape(std::span<const int64_t>(dims.data(), size_t(rank)));
}

struct TypeHead {
  int kind, version;
  uint32_t bits, size;
};
TypeHead parse_head(Cursor& c) {
  const uint8_t first = c.u8();
  const auto bits = uint32_t(c.number(3));
  return {first & 15, first >> 4, bits, c.u32()};
}

// True for h5py's bool: an enumeration of one byte with FALSE = 0 and TRUE = 1.
bool is_bool(Cursor c, const TypeHead& head) {
  if ((head.bits & 0xffff) != 2 || head.size != 1) return false;
  const TypeHead base = parse_head(c);
  if (base.kind != 0 || base.size != 1) return false;
  c.skip(4);  // offset and precision of the base
  std::array<std::string, 2> names;
  for (std::string& n : names) {
    n = c.word();
    if (head.version < 3) c.skip((8 - (n.size() + 1) % 8) % 8);
  }
  const uint8_t first = c.u8(), second = c.u8();
  return names[0] == "FALSE" && names[1] == "TRUE" && first == 0 && second == 1;
}

void parse_type(Source& source, Cursor c, const std::vector<Message>& messages, Dataset& d) {
  const TypeHead head = parse_head(c);
  d.element = int(std::min<uint32_t>(head.size, 16));
  const auto is = [&](DType dtype) { d.dtype = dtype; };
  if (head.kind == 1) {  // where the fields of a number with a point lie
    const uint32_t sign = head.bits >> 8 & 255;
    const bool little = (head.bits & 0x41) == 0, plain = (head.bits >> 4 & 3) == 2;  // the leading 1 is not stored
    const uint16_t offset = c.u16(), precision = c.u16();
    const uint8_t e_at = c.u8(), e = c.u8(), m_at = c.u8(), m = c.u8();
    const uint32_t bias = c.u32();
    const auto fits = [&](uint32_t size, uint32_t exponent) {
      const uint32_t mantissa = size * 8 - 1 - exponent;
      return head.size == size && little && plain && sign == size * 8 - 1 && offset == 0 && precision == size * 8 &&
             e_at == mantissa && e == exponent && m_at == 0 && m == mantissa &&
             bias == (uint32_t{1} << (exponent - 1)) - 1;
    };
    if (fits(4, 8)) return is(DType::kFloat32);
    if (fits(8, 11)) return is(DType::kFloat64);
    if (fits(2, 5)) return is(DType::kFloat16);
    if (fits(2, 8)) return is(DType::kBFloat16);
  } else if (head.kind == 0) {
    const uint16_t offset = c.u16(), precision = c.u16();
    const bool is_signed = head.bits & 8;
    if ((head.bits & 1) == 0 && offset == 0 && precision == head.size * 8) {
      if (head.size == 1) return is(is_signed ? DType::kInt8 : DType::kUInt8);
      if (head.size == 2) return is(is_signed ? DType::kInt16 : DType::kUInt16);
      if (head.size == 4) return is(is_signed ? DType::kInt32 : DType::kUInt32);
      if (head.size == 8) return is(is_signed ? DType::kInt64 : DType::kUInt64);
    }
  } else if (head.kind == 8) {
    if (is_bool(c, head)) return is(DType::kBool);
  } else if (head.kind == 5 && head.size == 2 && text_attribute(source, messages, "dtype") == "bfloat16") {
    return is(DType::kBFloat16);
  }
  c.fail("float16, float32, float64, bfloat16, int8 to int64, uint8 to uint64 or bool, little endian",
         head.kind <= 1 ? format("another number of {} bytes", head.size)
                        : format("values of another kind ({})", head.kind));
}

std::vector<uint16_t> parse_filters(Cursor c) {
  const uint8_t version = c.u8(), n = c.u8();
  c.need(version == 1 || version == 2, "filters of version 1 or 2", version);
  c.need(n <= 4, "at most 4 filters", n);
  if (version == 1) c.skip(6);
  std::vector<uint16_t> ids;
  for (int i = 0; i < n; ++i) {
    const uint16_t id = c.u16();
    if (id != kGzip && id != kShuffle) c.fail("the filters gzip or shuffle", format("filter {}", id));
    const uint16_t name = version == 1 ? c.u16() : uint16_t{0};
    c.skip(2);
    const uint16_t values = c.u16();
    c.skip(uint64_t(name + 7) / 8 * 8);
    c.skip(uint64_t(values) * 4 + (version == 1 && values % 2 ? 4 : 0));
    ids.push_back(id);
  }
  return ids;
}

uint64_t chunk_bytes(const Dataset& d) {
  uint64_t n = uint64_t(d.element);
  for (uint32_t c : d.chunk) n = c && n > kNowhere / 2 / c ? kNowhere / 2 : n * c;
  return n;
}

struct Chunk {
  uint64_t at;
  uint32_t size, skipped;  // bytes stored; bit i: filter i was not applied
  std::array<uint64_t, Shape::kMaxRank> begin;
};

// Calls f for each chunk in the B-tree of them.
void each_chunk(Source& source, const Dataset& d, uint64_t at, int parent_level,
                const std::function<void(const Chunk&)>& f) {
  Cursor head(source, at, 24, "B-tree of chunks");
  head.expect("TREE");
  const int type = head.u8(), level = head.u8();
  head.need(type == 1, "a node for chunks", uint64_t(type));
  head.need(parent_level < 0 || level == parent_level - 1, "a node one level down", uint64_t(level));
  const uint16_t used = head.u16();
  const auto rank = size_t(d.shape.rank());
  Cursor c(source, at + 24, used * (8 + 8 * (rank + 1) + 8), "B-tree of chunks");
  for (int i = 0; i < used; ++i) {
    Chunk chunk{};
    chunk.size = c.u32();
    chunk.skipped = c.u32();
    for (size_t k = 0; k < rank; ++k) chunk.begin[k] = c.u64();
    c.skip(8);
    chunk.at = c.u64();
    if (level > 0) {
      each_chunk(source, d, chunk.at, level, f);
      continue;
    }
    for (size_t k = 0; k < rank; ++k)
      if (chunk.begin[k] % d.chunk[k] != 0 || chunk.begin[k] >= uint64_t(d.shape[int(k)]))
        c.fail("a chunk that begins inside the values", format("one at {}", chunk.begin[k]));
    if (!source.holds(chunk.at, chunk.size))
      c.fail("a chunk inside the file", format("{} bytes at {}", chunk.size, chunk.at));
    f(chunk);
  }
}

void parse_layout(Source& source, Cursor c, Dataset& d) {
  const uint8_t version = c.u8();
  c.need(version == 3 || version == 4, "a layout of version 3 or 4", version);
  const uint8_t kind = c.u8();
  const uint64_t needed = uint64_t(d.shape.size()) * uint64_t(d.element);
  if (kind == 3) c.fail("values in this file", "a virtual dataset");
  c.need(kind <= 2, "a layout of kind 0, 1 or 2", kind);
  if (needed == 0) return;
  const auto enough = [&](uint64_t most, uint64_t unit) {
    if (needed > most || unit > most)
      c.fail(format("at most {} bytes of values from {} bytes stored", most, d.stored),
             format("{} bytes in pieces of {}", needed, unit));
  };
  if (kind == 0) {
    d.layout = Dataset::kCompact;
    d.stored = c.u16();
    d.address = c.position();
    c.skip(d.stored);
    return enough(d.stored, needed);
  }
  if (kind == 1) {
    d.layout = Dataset::kContiguous;
    d.address = c.u64();
    d.stored = d.address == kNowhere ? 0 : needed;
    if (d.address != kNowhere && !source.holds(d.address, needed))
      c.fail(format("values inside the file's {} bytes", source.size()), format("{} bytes at {}", needed, d.address));
    return enough(d.stored, needed);
  }
  c.need(version == 3, "chunks in a B-tree (a layout of version 3)", version);
  d.layout = Dataset::kChunked;
  const int rank = c.u8() - 1;
  if (rank != d.shape.rank()) c.fail(format("chunks of {} dimensions", d.shape.rank()), format("{}", rank));
  d.address = c.u64();
  uint64_t chunks = 1;
  for (int i = 0; i < rank; ++i) {
    d.chunk.push_back(c.u32());
    c.need(d.chunk.back() > 0, "a chunk of at least 1", 0);
    chunks *= (uint64_t(d.shape[i]) + d.chunk.back() - 1) / d.chunk.back();
  }
  const uint32_t element = c.u32();
  c.need(element == uint32_t(d.element), "chunks of this type", element);
  uint64_t found = 0;
  std::array<uint64_t, Shape::kMaxRank> last{};
  const auto count = [&](const Chunk& k) {
    if (found++ > 0 && k.begin <= last) c.fail("chunks in order, each once", format("one at {} again", k.begin[0]));
    last = k.begin;
    d.stored += k.size;
  };
  if (d.address != kNowhere) each_chunk(source, d, d.address, -1, count);
  const bool gzip = std::count(d.filters.begin(), d.filters.end(), kGzip) > 0;
  if (d.stored > source.size())
    c.fail(format("at most the file's {} bytes", source.size()), format("{} in its chunks", d.stored));
  enough(gzip ? d.stored * kMostInflation : d.stored, chunk_bytes(d));
  c.need(found == chunks, format("{} chunks", chunks), found);
}

// Copies what of a chunk lies inside the values: rows of the last dimension, one after the other.
void place(const Dataset& d, const Chunk& chunk, const std::byte* from, std::byte* to) {
  const int rank = d.shape.rank();
  std::array<uint64_t, Shape::kMaxRank> n{}, i{};
  for (int k = 0; k < rank; ++k)
    n[size_t(k)] = std::min<uint64_t>(d.chunk[size_t(k)], uint64_t(d.shape[k]) - chunk.begin[size_t(k)]);
  for (;;) {
    uint64_t source = 0, target = 0;
    for (int k = 0; k < rank; ++k) {
      source = source * d.chunk[size_t(k)] + i[size_t(k)];
      target = target * uint64_t(d.shape[k]) + chunk.begin[size_t(k)] + i[size_t(k)];
    }
    std::memcpy(to + target * uint64_t(d.element), from + source * uint64_t(d.element),
                n[size_t(rank - 1)] * uint64_t(d.element));
    int k = rank - 2;
    while (k >= 0 && ++i[size_t(k)] == n[size_t(k)]) i[size_t(k--)] = 0;
    if (k < 0) return;
  }
}

void read_chunks(Source& source, const Dataset& d, std::byte* to) {
  const uint64_t whole = chunk_bytes(d);
  each_chunk(source, d, d.address, -1, [&](const Chunk& chunk) {
    std::vector<std::byte> values(chunk.size);
    source.read(chunk.at, values.data(), chunk.size);
    for (size_t i = d.filters.size(); i-- > 0;) {
      if (chunk.skipped >> i & 1) continue;
      if (d.filters[i] == kShuffle)
        unshuffle(values, size_t(d.element));
      else if (!inflate(values, whole))
        throw source.wrong(chunk.at, "chunk", format("{} bytes compressed with gzip", whole), "something else");
    }
    if (values.size() != whole)
      throw source.wrong(chunk.at, "chunk", format("{} bytes", whole), format("{}", values.size()));
    if (d.shape.rank() == 0)
      std::memcpy(to, values.data(), values.size());
    else
      place(d, chunk, values.data(), to);
  });
}

void read_raw(Source& source, const Dataset& d, std::byte* to) {
  if (d.layout == Dataset::kChunked)
    read_chunks(source, d, to);
  else if (d.layout != Dataset::kNothing)
    source.read(d.address, to, uint64_t(d.shape.size()) * uint64_t(d.element));
}
}  // namespace

Dataset describe(Source& source, const std::vector<Message>& messages) {
  Dataset d;
  d.shape = parse_space(the(source, messages, kDataspace, "space").data);
  parse_type(source, the(source, messages, kDatatype, "type").data, messages, d);
  if (find(messages, kExternalFiles)) throw source.wrong("values in this file", "values in another file");
  if (const Message* filters = find(messages, kFilters)) d.filters = parse_filters(filters->data);
  parse_layout(source, the(source, messages, kLayout, "layout").data, d);
  return d;
}

void read_values(Source& source, const Dataset& d, std::byte* to) {
  read_raw(source, d, to);
  if (d.dtype != DType::kBool) return;
  for (int64_t i = 0; i < d.shape.size(); ++i)
    if (uint8_t(to[i]) > 1) throw source.wrong("a bool, 0 or 1", format("{}", uint8_t(to[i])));
}

}  // namespace millpond::io::h5
