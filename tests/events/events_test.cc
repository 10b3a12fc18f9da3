#include <doctest/doctest.h>
#include <zlib.h>

#include "events/png.h"
#include "events/tensorboard.h"
#include "events/wire.h"

using namespace millpond::events;

TEST_CASE("wire: varints, lengths and fixed numbers as protocol buffers have them") {
  CHECK(Message().number(1, 150).data() == "\x08\x96\x01");
  CHECK(Message().bytes(2, "testing").data() == "\x12\x07testing");
  CHECK(Message().message(3, Message().number(1, 1)).data() == "\x1a\x02\x08\x01");
  CHECK(Message().real(1, 1.0).data() == std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
}
TEST_CASE("event files: each record carries its length and two checksums") {
  const std::string r = framed("abc");
  REQUIRE(r.size() == 8 + 4 + 3 + 4);
  CHECK(r.substr(0, 8) == std::string("\x03\0\0\0\0\0\0\0", 8));
  CHECK(r.substr(12, 3) == "abc");
  EventFile file(12.5);
  file.scalar("a", 1, 13, 2);
  const std::string all = file.take();
  CHECK(all.find("brain.Event:2") != all.npos);
}
TEST_CASE("png: a picture that another reader can unpack, and what lies outside is left out") {
  Picture p(3, 2, {1, 2, 3});
  p.fill(-5, -5, 1, 1, {9, 8, 7});
  p.fill(2, 1, 100, 100, {4, 5, 6});
  const std::string png = p.png();
  CHECK(png.substr(1, 3) == "PNG");
  const size_t at = png.find("IDAT") + 4, end = png.find("IEND") - 8;
  std::string rows(2 * (3 * 3 + 1), '\0');
  uLongf size = uLongf(rows.size());
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size, reinterpret_cast<const Bytef*>(png.data() + at),
                     uLong(end - at)) == Z_OK);
  CHECK(rows == std::string("\0\x09\x08\x07\x01\x02\x03\x01\x02\x03\0\x01\x02\x03\x01\x02\x03\x04\x05\x06", 20));
}
