#include "data/formats/example.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "data/formats/source.h"

namespace millpond::data {

std::string_view to_string(FeatureKind kind) {
  static constexpr const char* kNames[] = {"nothing", "bytes", "float", "int64"};
  return kNames[int(kind)];
}

// The messages, with the numbers of their fields:
//   Example  1 Features        Features  1 repeated { 1 name, 2 Feature }        Feature  1 BytesList, 2 FloatList, 3
//   Int64List each list  1 repeated value; numbers may be packed into one field, in pieces, or be single
// Wire format: a tag (number << 3 | wire type), then 0: varint, 1: eight bytes, 2: a length and so many bytes, 5: four
// bytes.
class Example::Parser {
 public:
  Parser(Example& e, std::span<const std::byte> bytes, std::string_view file, int64_t record)
      : e_(e), start_(reinterpret_cast<const uint8_t*>(bytes.data())), file_(file), record_(record) {}

  struct Piece {
    const uint8_t *at, *end;
    size_t size() const { return size_t(end - at); }
  };

  void example(Piece m) {
    while (m.at < m.end) {
      const uint32_t tag = read_tag(m);
      if (tag == (1 << 3 | 2))
        features(read_piece(m, "the features"));
      else
        skip(m, tag);
    }
  }

 private:
  void features(Piece m) {
    while (m.at < m.end) {
      const uint32_t tag = read_tag(m);
      if (tag == (1 << 3 | 2))
        entry(read_piece(m, "a feature"));
      else
        skip(m, tag);
    }
  }

  void entry(Piece m) {
    Feature f;
    bool has_name = false;
    while (m.at < m.end) {
      const uint32_t tag = read_tag(m);
      if (tag == (1 << 3 | 2)) {
        const Piece name = read_piece(m, "a name");
        f.name = {reinterpret_cast<const char*>(name.at), name.size()};
        has_name = true;
      } else if (tag == (2 << 3 | 2)) {
        feature(read_piece(m, "a feature's values"), f);
      } else {
        skip(m, tag);
      }
    }
    if (!has_name) f.name = {};  // protobuf: a field that is not there has its default
    e_.features_.push_back(f);
  }

  void feature(Piece m, Feature& f) {
    while (m.at < m.end) {
      const uint32_t tag = read_tag(m);
      switch (tag) {
        case 1 << 3 | 2:
          begin(f, FeatureKind::kBytes, e_.bytes_.size()), byte_list(read_piece(m, "a list of bytes"), f);
          break;
        case 2 << 3 | 2:
          begin(f, FeatureKind::kFloat, e_.floats_.size()), float_list(read_piece(m, "a list of floats"), f);
          break;
        case 3 << 3 | 2:
          begin(f, FeatureKind::kInt64, e_.ints_.size()), int_list(read_piece(m, "a list of int64"), f);
          break;
        default:
          skip(m, tag);
      }
    }
  }
  // Another list of the same kind goes on with the first; one of another kind takes its place (a oneof).
  void begin(Feature& f, FeatureKind kind, size_t size) {
    if (f.kind == kind) return;
    f.kind = kind;
    f.begin = size;
    f.count = 0;
  }

  void byte_list(Piece m, Feature& f) {
    while (m.at < m.end) {
      const uint32_t tag = read_tag(m);
      if (tag != (1 << 3 | 2)) {
        skip(m, tag);
        continue;
      }
      const Piece v = read_piece(m, "a value");
      e_.bytes_.emplace_back(reinterpret_cast<const char*>(v.at), v.size());
    }
    f.count = e_.bytes_.size() - f.begin;
  }

  void float_list(Piece m, Feature& f) {
    while (m.at < m.end) {
      const uint8_t* here = m.at;
      const uint32_t tag = read_tag(m);
      if (tag == (1 << 3 | 2)) {
        const Piece v = read_piece(m, "packed floats");
        if (v.size() % 4) fail(here, "a multiple of four bytes of floats", format("{}", v.size()));
        const size_t n = v.size() / 4, old = e_.floats_.size();
        e_.floats_.resize(old + n);
        if (n) std::memcpy(e_.floats_.data() + old, v.at, v.size());
      } else if (tag == (1 << 3 | 5)) {
        float x;
        need(m, 4, "a float");
        std::memcpy(&x, m.at, 4);
        m.at += 4;
        e_.floats_.push_back(x);
      } else {
        skip(m, tag);
      }
    }
    f.count = e_.floats_.size() - f.begin;
  }

  void int_list(Piece m, Feature& f) {
    while (m.at < m.end) {
      const uint32_t tag = read_tag(m);
      if (tag == (1 << 3 | 2)) {
        Piece v = read_piece(m, "packed int64");
        const size_t old = e_.ints_.size();
        e_.ints_.resize(old + v.size());  // a value takes a byte or more
        int64_t* to = e_.ints_.data() + old;
        while (v.at < v.end) *to++ = int64_t(read_varint(v));
        e_.ints_.resize(size_t(to - e_.ints_.data()));
      } else if (tag == (1 << 3 | 0)) {
        e_.ints_.push_back(int64_t(read_varint(m)));
      } else {
        skip(m, tag);
      }
    }
    f.count = e_.ints_.size() - f.begin;
  }

  // ---- the wire ----

  uint64_t read_varint(Piece& m) {
    if (m.at < m.end && *m.at < 0x80) [[likely]]
      return *m.at++;
    const uint8_t* here = m.at;
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (m.at == m.end) fail(here, "a number that ends", "the end of the message");
      const uint8_t b = *m.at++;
      if (shift < 64) v |= uint64_t(b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    fail(here, "a number of at most ten bytes", "more");
  }
  uint32_t read_tag(Piece& m) {
    const uint8_t* here = m.at;
    const uint64_t tag = read_varint(m);
    if (tag >> 32 || tag >> 3 == 0) fail(here, "a field's tag", format("{}", tag));
    return uint32_t(tag);
  }
  void need(const Piece& m, uint64_t n, const char* what) {
    if (n > m.size())
      fail(m.at, format("{} bytes of {}", n, what), format("{} to the end of the message it is in", m.size()));
  }
  Piece read_piece(Piece& m, const char* what) {
    const uint64_t n = read_varint(m);
    need(m, n, what);
    const Piece p{m.at, m.at + n};
    m.at += n;
    return p;
  }
  // A field that is none of ours.
  void skip(Piece& m, uint32_t tag) {
    const uint8_t* here = m.at;
    switch (tag & 7) {
      case 0:
        read_varint(m);
        return;
      case 1:
        need(m, 8, "an unknown field"), m.at += 8;
        return;
      case 2:
        read_piece(m, "an unknown field");
        return;
      case 5:
        need(m, 4, "an unknown field"), m.at += 4;
        return;
      default:
        fail(here, "wire type 0, 1, 2 or 5", format("{}", tag & 7));
    }
  }
  [[noreturn]] void fail(const uint8_t* at, const std::string& expected, const std::string& found) const {
    const std::string where = format("record {}, byte {} of it", record_, at - start_);
    throw Error(Code::kFormat,
                format("{}: {}: not a tf.train.Example: expected {}, found {}", file_, where, expected, found))
        .with("file", std::string(file_))
        .with("where", where)
        .with("expected", expected)
        .with("found", found);
  }

  Example& e_;
  const uint8_t* start_;
  std::string_view file_;
  int64_t record_;
};

void Example::parse(std::span<const std::byte> bytes, std::string_view file, int64_t record) {
  features_.clear();
  ints_.clear();
  floats_.clear();
  bytes_.clear();
  order_.clear();
  Parser parser(*this, bytes, file, record);
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  try {
    parser.example({at, at + bytes.size()});
  } catch (...) {
    features_.clear();
    throw;
  }
  // Sorted by name for find(), and so that of doubles only the last one stays.
  const size_t n = features_.size();
  order_.resize(n);
  for (size_t i = 0; i < n; ++i) order_[i] = uint32_t(i);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    const int c = features_[a].name.compare(features_[b].name);
    return c ? c < 0 : a < b;
  });
  bool doubles = false;
  for (size_t i = 1; i < n; ++i)
    if (features_[order_[i - 1]].name == features_[order_[i]].name) {
      features_[order_[i - 1]].begin = SIZE_MAX;
      doubles = true;
    }
  if (!doubles) return;
  std::erase_if(features_, [](const Feature& f) { return f.begin == SIZE_MAX; });
  order_.resize(features_.size());
  for (size_t i = 0; i < order_.size(); ++i) order_[i] = uint32_t(i);
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t a, uint32_t b) { return features_[a].name < features_[b].name; });
}

const Feature* Example::find(std::string_view name) const {
  const auto at = std::lower_bound(order_.begin(), order_.end(), name,
                                   [&](uint32_t i, std::string_view wanted) { return features_[i].name < wanted; });
  return at != order_.end() && features_[*at].name == name ? &features_[*at] : nullptr;
}

std::span<const int64_t> Example::ints(const Feature& f) const {
  if (f.kind != FeatureKind::kInt64) return {};
  return std::span(ints_).subspan(f.begin, f.count);
}
std::span<const float> Example::floats(const Feature& f) const {
  if (f.kind != FeatureKind::kFloat) return {};
  return std::span(floats_).subspan(f.begin, f.count);
}
std::span<const std::string_view> Example::bytes(const Feature& f) const {
  if (f.kind != FeatureKind::kBytes) return {};
  return std::span(bytes_).subspan(f.begin, f.count);
}

// ---- writing ----

namespace {
void put_varint(std::string& to, uint64_t v) {
  for (; v >= 0x80; v >>= 7) to += char(v | 0x80);
  to += char(v);
}
void put_piece(std::string& to, int field, std::string_view bytes) {
  put_varint(to, uint64_t(field) << 3 | 2);
  put_varint(to, bytes.size());
  to += bytes;
}
}  // namespace

void ExampleWriter::clear() { body_.clear(); }

// list_ holds the content of a BytesList, FloatList or Int64List.
void ExampleWriter::add_feature(std::string_view name, int kind) {
  message_.clear();
  put_piece(message_, kind, list_);  // Feature
  list_.clear();
  put_piece(list_, 1, name);  // the entry of the map
  put_piece(list_, 2, message_);
  put_piece(body_, 1, list_);
}
void ExampleWriter::add(std::string_view name, std::span<const int64_t> values) {
  packed_.clear();
  for (int64_t v : values) put_varint(packed_, uint64_t(v));
  list_.clear();
  if (!values.empty()) put_piece(list_, 1, packed_);
  add_feature(name, 3);
}
void ExampleWriter::add(std::string_view name, std::span<const float> values) {
  list_.clear();
  if (!values.empty()) put_piece(list_, 1, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  add_feature(name, 2);
}
void ExampleWriter::add(std::string_view name, std::span<const std::string_view> values) {
  list_.clear();
  for (std::string_view v : values) put_piece(list_, 1, v);
  add_feature(name, 1);
}
std::string_view ExampleWriter::finish() {
  message_.clear();
  put_piece(message_, 1, body_);
  return message_;
}

}  // namespace millpond::data
