#include "data/formats/source.h"

#include <sys/stat.h>

#include <array>

#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
std::string read_in_pieces(ByteStream& s, size_t piece) {
  std::string out, part(piece, '\0');
  while (const size_t n = s.read(std::as_writable_bytes(std::span(part.data(), part.size())))) out.append(part, 0, n);
  return out;
}
std::string noise(size_t n, uint64_t seed = 1) {
  Random random(seed);
  std::string s;
  while (s.size() < n) s += char(random.below(200)), s += std::string(random.below(9), 'x');
  s.resize(n);
  return s;
}
}  // namespace

TEST_CASE("source: a file, a piece of it and bytes in memory read alike, and end where they end") {
  Scratch dir;
  const std::string text = noise(100000);
  const SharedSource file = open_file(dir.put("a.bin", text)), memory = text_source(text);
  for (const SharedSource& s : {file, memory, section_of(file, 0, 100000, "all")}) {
    CHECK(s->size() == 100000);
    std::string b(50, '\0');
    const auto to = std::as_writable_bytes(std::span(b.data(), b.size()));
    CHECK(s->read_at(99980, to) == 20);
    CHECK(b.substr(0, 20) == text.substr(99980));
    CHECK(s->read_at(100000, to) == 0);
    CHECK(s->read_at(200000, to) == 0);
    s->read_exactly(77, to);
    CHECK(b == text.substr(77, 50));
    CHECK(thrown([&] { s->read_exactly(99990, to); }).code() == Code::kFormat);
  }
  const SharedSource part = section_of(file, 1000, 30, "part");
  std::string b(50, '\0');
  CHECK(part->read_at(10, std::as_writable_bytes(std::span(b.data(), b.size()))) == 20);
  CHECK(b.substr(0, 20) == text.substr(1010, 20));
}

TEST_CASE("source: what is no plain file is refused without waiting for it") {
  Scratch dir;
  mkfifo(dir.path("pipe").c_str(), 0600);
  for (const std::string& name : {dir.path("pipe"), dir.path("."), dir.path("absent"), std::string("/dev/zero")}) {
    CHECK(thrown([&] { open_file(name); }).code() == Code::kFile);
    std::string to;
    CHECK(thrown([&] { read_file(name, to, Bytes{1 << 20}); }).code() == Code::kFile);
  }
}

TEST_CASE("source: read_file uses its memory again and keeps its limit") {
  Scratch dir;
  std::string to;
  read_file(dir.put("a", std::string(1000, 'a')), to, Bytes{1000});
  const char* at = to.data();
  read_file(dir.put("b", std::string(500, 'b')), to, Bytes{1000});
  CHECK(to == std::string(500, 'b'));
  CHECK(to.data() == at);
  CHECK(thrown([&] { read_file(dir.put("c", std::string(1001, 'c')), to, Bytes{1000}); }).code() == Code::kFormat);
}

TEST_CASE("source: gzip, zlib and deflate streams come out whole, in pieces of any size, and from any position") {
  const std::string text = noise(300000);
  struct Kind {
    int bits;
    Compression how;
  };
  for (const auto& [bits, how] : {Kind{31, Compression::kGzip}, Kind{31, Compression::kAuto},
                                  Kind{15, Compression::kZlib}, Kind{-15, Compression::kDeflate}}) {
    const std::string packed = deflated(text, bits);
    for (size_t piece : {1000, 65536, 1 << 20}) {
      ByteStream s(text_source(packed), how);
      CHECK(s.compressed());
      CHECK(read_in_pieces(s, piece) == text);
      CHECK(s.position() == 300000);
      for (int64_t at : {int64_t{250000}, int64_t{0}, int64_t{299999}, int64_t{300000}, int64_t{400000}}) {
        s.seek(at);
        CHECK(read_in_pieces(s, piece) == text.substr(size_t(std::min<int64_t>(at, 300000))));
      }
    }
  }
  // A deflate stream may be read to its last byte while much of what it says is still to come.
  const std::string zeros = deflated(std::string(100000, 'z'), -15);
  for (size_t piece : {1, 7, 1000}) {
    ByteStream s(text_source(zeros), Compression::kDeflate);
    CHECK(read_in_pieces(s, piece) == std::string(100000, 'z'));
  }
  ByteStream plain(text_source(text), Compression::kAuto);
  CHECK_FALSE(plain.compressed());
  plain.seek(299000);
  CHECK(plain.at_most_left() == 1000);
  CHECK(read_in_pieces(plain, 77) == text.substr(299000));
}

TEST_CASE("source: gzip members one after the other are one stream") {
  const std::string a = noise(70000, 1), b = noise(3, 2), packed = deflated(a, 31) + deflated("", 31) + deflated(b, 31);
  ByteStream s(text_source(packed), Compression::kGzip);
  CHECK(read_in_pieces(s, 4096) == a + b);
}

TEST_CASE("source: compressed bytes cut anywhere give what was whole, then an error") {
  const std::string text = noise(3000);
  for (int bits : {31, 15, -15}) {
    const std::string packed = deflated(text, bits);
    const Compression how = bits == 31 ? Compression::kGzip : bits == 15 ? Compression::kZlib : Compression::kDeflate;
    for (size_t n = 0; n < packed.size(); ++n) {
      const std::string part = packed.substr(0, n);
      ByteStream s(text_source(part), how);
      std::string out;
      const Error e = thrown([&] {
        std::array<std::byte, 100> b;
        while (const size_t got = s.read(b)) out.append(reinterpret_cast<char*>(b.data()), got);
      });
      REQUIRE(e.code() == Code::kFormat);
      REQUIRE(text.starts_with(out));
    }
    const std::string more = packed + "x";
    ByteStream s(text_source(more), how);
    CHECK(thrown([&] { read_in_pieces(s, 100000); }).code() == Code::kFormat);
  }
}

TEST_CASE("source: names of compressions as tf.data spells them") {
  CHECK(parse_compression("GZIP") == Compression::kGzip);
  CHECK(parse_compression("zlib") == Compression::kZlib);
  CHECK(parse_compression("") == Compression::kNone);
  CHECK(thrown([] { parse_compression("rar"); }).code() == Code::kUsage);
}
