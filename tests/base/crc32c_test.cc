#include "base/crc32c.h"

#include <doctest/doctest.h>

#include <string>

#include "base/random.h"

using namespace millpond;

namespace {
std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
}  // namespace

TEST_CASE("crc32c: known values, and the instruction agrees with the table at every length and place") {
  CHECK(crc32c(bytes_of("123456789")) == 0xe3069283u);
  CHECK(crc32c(bytes_of("")) == 0u);
  CHECK(crc32c(bytes_of(std::string(32, '\0'))) == 0x8a9136aau);  // RFC 3720
  CHECK(crc32c(bytes_of(std::string(32, '\xff'))) == 0x62a8ab43u);
  Random random(1);
  std::string s(20000, '\0');
  for (char& c : s) c = char(random.next());
  for (int i = 0; i < 3000; ++i) {
    const size_t at = random.below(64), n = random.below(random.below(2) ? 100 : 19000);
    const auto part = bytes_of({s.data() + at, n});
    const auto before = uint32_t(random.next());
    REQUIRE(crc32c(part, before) == crc32c_by_table(part, before));
    const size_t cut = random.below(n + 1);
    REQUIRE(crc32c(part) == crc32c(part.subspan(cut), crc32c(part.first(cut))));
  }
}
