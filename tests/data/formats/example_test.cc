#include "data/formats/example.h"

#include <deque>

#include "base/format.h"
#include "data/formats/helpers.h"

using namespace millpond;
using namespace millpond::data;

namespace {
std::string varint(uint64_t v) {
  std::string s;
  for (; v >= 0x80; v >>= 7) s += char(v | 0x80);
  return s + char(v);
}
std::string field(int number, const std::string& bytes) {
  return varint(uint64_t(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string one(const std::string& name, const std::string& feature) {
  return field(1, field(1, field(1, name) + field(2, feature)));
}
// The example's views point into the text, which therefore stays.
Example parsed(const std::string& s) {
  static std::deque<std::string> kept;
  Example e;
  e.parse(bytes_of(kept.emplace_back(s)));
  return e;
}
}  // namespace

TEST_CASE("example: what the writer wrote is read back, kind by kind") {
  ExampleWriter w;
  for (int again = 0; again < 2; ++again) {
    w.clear();
    const int64_t ints[] = {0, -1, 127, 128, INT64_MAX, INT64_MIN};
    const float floats[] = {1.5f, -0.f, 1e30f};
    const std::string_view words[] = {"", "abc", std::string_view("\0\xff", 2)};
    w.add("i", ints);
    w.add("f", floats);
    w.add("b", words);
    w.add("none", std::span<const float>());
    w.add("one", "x");
    const std::string bytes(w.finish());
    Example e;
    e.parse(bytes_of(bytes));
    CHECK(e.features().size() == 5);
    CHECK(std::ranges::equal(e.ints(*e.find("i")), ints));
    CHECK(std::ranges::equal(e.floats(*e.find("f")), floats));
    CHECK(std::ranges::equal(e.bytes(*e.find("b")), words));
    CHECK(e.find("none")->kind == FeatureKind::kFloat);
    CHECK(e.floats(*e.find("none")).empty());
    CHECK(e.bytes(*e.find("one"))[0] == "x");
    CHECK(e.find("absent") == nullptr);
    CHECK(e.ints(*e.find("f")).empty());
  }
}

TEST_CASE(
    "example: packed, unpacked and mixed lists, fields nobody knows, doubles and changes of kind are read as protobuf "
    "does") {
  const std::string f1("\0\0\x80\x3f", 4);  // 1.0f
  // Unpacked: each value has a tag of its own; mixed with packed pieces.
  const std::string ints =
      field(3, varint(1 << 3) + varint(5) + field(1, varint(6) + varint(300)) + varint(1 << 3) + varint(7));
  const std::string floats = field(2, varint(1 << 3 | 5) + f1 + field(1, f1 + f1));
  Example e = parsed(one("i", ints) + one("f", floats));
  CHECK(std::ranges::equal(e.ints(*e.find("i")), std::vector<int64_t>{5, 6, 300, 7}));
  CHECK(e.floats(*e.find("f")).size() == 3);
  // Unknown fields of every wire type, at every level.
  const std::string unknown =
      varint(9 << 3) + varint(1) + varint(9 << 3 | 1) + "12345678" + field(9, "zzz") + varint(9 << 3 | 5) + "1234";
  e = parsed(unknown +
             field(1, unknown +
                          field(1, unknown + field(1, "i") +
                                       field(2, unknown + field(3, unknown + field(1, varint(8))) + unknown)) +
                          unknown));
  CHECK(std::ranges::equal(e.ints(*e.find("i")), std::vector<int64_t>{8}));
  // The last of two with one name; two lists of one kind go on; another kind takes the place.
  e = parsed(one("a", field(3, field(1, varint(1)))) + one("b", "") + one("a", field(3, field(1, varint(2)))));
  CHECK(e.features().size() == 2);
  CHECK(std::ranges::equal(e.ints(*e.find("a")), std::vector<int64_t>{2}));
  CHECK(e.find("b")->kind == FeatureKind::kNone);
  e = parsed(one("a", field(3, field(1, varint(1))) + field(3, field(1, varint(2)))));
  CHECK(std::ranges::equal(e.ints(*e.find("a")), std::vector<int64_t>{1, 2}));
  e = parsed(one("a", field(3, field(1, varint(1))) + field(1, field(1, "x"))));
  CHECK(e.find("a")->kind == FeatureKind::kBytes);
  CHECK(e.bytes(*e.find("a"))[0] == "x");
  CHECK(parsed("").features().empty());
}

TEST_CASE("example: bytes that are none are refused with the place") {
  struct Case {
    std::string bytes, message;
  };
  for (const auto& [bytes, message] : {
           Case{"\x0a\x05zz",
                "the example: record 0, byte 2 of it: not a tf.train.Example: expected 5 bytes of the features, found "
                "2 to the end of the message it is in"},
           Case{"\x0a",
                "the example: record 0, byte 1 of it: not a tf.train.Example: expected a number that ends, found the "
                "end of the message"},
           Case{std::string(11, '\xff'),
                "the example: record 0, byte 0 of it: not a tf.train.Example: expected a number of at most ten bytes, "
                "found more"},
           Case{std::string(1, '\0'),
                "the example: record 0, byte 0 of it: not a tf.train.Example: expected a field's tag, found 0"},
           Case{
               "\x0b",
               "the example: record 0, byte 1 of it: not a tf.train.Example: expected wire type 0, 1, 2 or 5, found 3"},
           Case{one("f", field(2, field(1, "123"))),
                "the example: record 0, byte 11 of it: not a tf.train.Example: expected a multiple of four bytes of "
                "floats, found 3"},
       }) {
    Example e;
    CHECK(thrown([&] { e.parse(bytes_of(bytes)); }).text() == message);
    CHECK(e.features().empty());
    CHECK(e.find("f") == nullptr);
  }
}

TEST_CASE("example: cut anywhere it is refused or has fewer values, never more") {
  const std::string whole = one("i", field(3, field(1, varint(5) + varint(600)))) + one("b", field(1, field(1, "abc")));
  Example e;
  for (size_t n = 0; n <= whole.size(); ++n) {
    const std::string part = whole.substr(0, n);
    try {
      e.parse(bytes_of(part));
      CHECK(e.features().size() <= 2);
    } catch (const Error& error) {
      CHECK(error.code() == Code::kFormat);
    }
  }
  CHECK(e.features().size() == 2);
}
