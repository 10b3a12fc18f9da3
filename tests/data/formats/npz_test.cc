#include "data/formats/npz.h"

#include <zlib.h>

#include <cstring>

#include "base/format.h"
#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
std::string little(uint64_t v, size_t n) {
  std::string s;
  for (size_t i = 0; i < n; ++i) s += char(v >> (8 * i));
  return s;
}
std::string npy(const std::string& descr, const std::string& shape, const std::string& values) {
  std::string header = format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\0", 8) + little(header.size(), 2) + header + values;
}
struct Part {
  std::string name, content;
  bool deflate = false;
};
// An archive by hand; `large`: all sizes and places in zip64's fields.
std::string archive(const std::vector<Part>& parts, bool large = false, const std::string& comment = "") {
  std::string body, directory;
  for (const Part& p : parts) {
    const std::string packed = p.deflate ? deflated(p.content, -15) : p.content;
    const auto crc = uint32_t(crc32(0, reinterpret_cast<const Bytef*>(p.content.data()), uInt(p.content.size())));
    const uint64_t at = body.size();
    const std::string both =
        little(large ? 0xffffffff : packed.size(), 4) + little(large ? 0xffffffff : p.content.size(), 4);
    const std::string big =
        large ? little(1, 2) + little(24, 2) + little(p.content.size(), 8) + little(packed.size(), 8) + little(at, 8)
              : "";
    const std::string common =
        little(0, 2) + little(p.deflate ? 8 : 0, 2) + little(0, 4) + little(crc, 4) + both + little(p.name.size(), 2);
    body += "PK\x03\x04" + little(20, 2) + common + little(4, 2) + p.name + "\x99\x99" + little(0, 2) + packed;
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + common + little(big.size(), 2) + little(0, 2) +
                 little(0, 2) + little(0, 2) + little(0, 4) + little(large ? 0xffffffff : at, 4) + p.name + big;
  }
  const uint64_t at = body.size();
  body += directory;
  if (large) {
    const uint64_t end = body.size();
    body += "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(parts.size(), 8) +
            little(parts.size(), 8) + little(directory.size(), 8) + little(at, 8);
    body += "PK\x06\x07" + little(0, 4) + little(end, 8) + little(1, 4);
  }
  return body + "PK\x05\x06" + little(0, 4) + little(large ? 0xffff : parts.size(), 2) +
         little(large ? 0xffff : parts.size(), 2) + little(large ? 0xffffffff : directory.size(), 4) +
         little(large ? 0xffffffff : at, 4) + little(comment.size(), 2) + comment;
}
std::string floats(int n) {
  std::string s;
  for (int i = 0; i < n; ++i) {
    const float f = float(i) + 0.5f;
    s.append(reinterpret_cast<const char*>(&f), 4);
  }
  return s;
}
std::span<std::byte> room(std::string& s) { return std::as_writable_bytes(std::span(s.data(), s.size())); }
std::string all(NpzStream& s, int64_t rows) {
  std::string out, part(size_t(rows * s.member().row_bytes().value), '\0');
  while (const int64_t n = s.read(rows, room(part))) out.append(part, 0, size_t(n * s.member().row_bytes().value));
  return out;
}
}  // namespace

TEST_CASE("npz: members with their types and shapes, stored and deflated, in plain and zip64 archives") {
  const std::string values = floats(600);
  for (bool large : {false, true})
    for (bool deflate : {false, true}) {
      const std::string file = archive({{"x.npy", npy("<f4", "(200, 3)", values), deflate},
                                        {"y.npy", npy("<i8", "(2,)", little(7, 8) + little(8, 8)), deflate},
                                        {"s.npy", npy("<f4", "()", floats(1)), deflate},
                                        {"e.npy", npy("|u1", "(0, 4)", ""), deflate},
                                        {"readme.txt", "hello", deflate}},
                                       large, "a comment");
      const NpzFile f(text_source(file, "t.npz"));
      REQUIRE(f.members().size() == 4);
      CHECK(f.member("x").shape == Shape{200, 3});
      CHECK(f.member("y").dtype == DType::kInt64);
      CHECK(f.member("s").rows() == 1);
      CHECK(f.member("e").rows() == 0);
      CHECK(thrown([&] { f.member("z"); }).hint() == "it has x, y, s, e");
      for (int64_t rows : {1, 7, 1000}) {
        NpzStream x(f, "x");
        CHECK(all(x, rows) == values);
        CHECK(x.position() == 200);
        for (int64_t at : {150, 0, 199, 200}) {
          x.seek(at);
          CHECK(all(x, rows) == values.substr(size_t(at * 12)));
        }
        NpzStream e(f, "e"), s(f, "s");
        CHECK(all(e, rows).empty());
        CHECK(all(s, rows) == floats(1));
      }
      std::string part(36, '\0');
      if (deflate) {
        CHECK(thrown([&] { f.read_rows(f.member("x"), 0, 3, room(part)); }).code() == Code::kUnsupported);
      } else {
        f.read_rows(f.member("x"), 197, 3, room(part));
        CHECK(part == values.substr(197 * 12));
        CHECK(thrown([&] { f.read_rows(f.member("x"), 198, 3, room(part)); }).code() == Code::kUsage);
        CHECK(thrown([&] { f.read_rows(f.member("x"), 0, 4, room(part)); }).code() == Code::kUsage);
        CHECK(thrown([&] { f.read_rows(f.member("x"), -1, 1, room(part)); }).code() == Code::kUsage);
      }
    }
}

TEST_CASE("npz: every prefix is refused, and a changed byte never goes unnoticed in what is read") {
  const std::string values = floats(30);
  for (bool large : {false, true})
    for (bool deflate : {false, true}) {
      const std::string whole = archive({{"x.npy", npy("<f4", "(10, 3)", values), deflate}}, large);
      const auto read = [](const std::string& file) {
        const NpzFile f(text_source(file, "t.npz"));
        if (f.members().size() != 1 || f.members()[0].shape != Shape{10, 3} || f.members()[0].dtype != DType::kFloat32)
          return std::string("another");
        NpzStream s(f, f.members()[0].name);
        return all(s, 4);
      };
      for (size_t n = 0; n < whole.size(); ++n)
        REQUIRE(thrown([&] { read(whole.substr(0, n)); }).code() == Code::kFormat);
      for (size_t at = 0; at < whole.size(); ++at) {
        std::string bad = whole;
        bad[at] = char(bad[at] ^ 0x21);
        try {
          const std::string got = read(bad);
          REQUIRE((got == values || got == "another"));  // a byte that nobody reads, or another array altogether
        } catch (const Error&) {
        }
      }
    }
}

TEST_CASE("npz: what we do not read is named") {
  const std::string x = npy("<f4", "(1,)", floats(1));
  std::string twice = archive({{"x.npy", x}, {"x.npy", x}});
  CHECK(thrown([&] { NpzFile f(text_source(twice)); }).code() == Code::kFormat);
  std::string locked = archive({{"x.npy", x}});
  locked[locked.find("PK\x01\x02") + 8] = 1;
  CHECK(thrown([&] { NpzFile f(text_source(locked)); }).code() == Code::kUnsupported);
  std::string method = archive({{"x.npy", x}});
  method[method.find("PK\x01\x02") + 10] = 12;
  CHECK(thrown([&] { NpzFile f(text_source(method)); }).code() == Code::kUnsupported);
  const std::string bools = archive({{"x.npy", npy("|b1", "(3,)", std::string("\1\0\2", 3))}});
  const NpzFile f(text_source(bools));
  std::string to(3, '\0');
  CHECK(thrown([&] { f.read_rows(f.member("x"), 0, 3, room(to)); }).code() == Code::kFormat);
  f.read_rows(f.member("x"), 0, 2, room(to));
}
