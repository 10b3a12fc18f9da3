#include "watch/limits.h"

#include <doctest/doctest.h>

namespace millpond::watch {
namespace {

constexpr const char* kStatus = "Name:\tpython3\nVmSize:\t  400000 kB\nVmRSS:\t  100000 kB\nVmData:\t  150000 kB\n";

TEST_CASE("limits: a limit that the program sets is told as the resident memory at which it is reached") {
  const auto limit = parse_own_limit(
      "Limit                     Soft Limit           Hard Limit           Units     \nMax data size             "
      "unlimited            unlimited            bytes\nMax address space         614400000            unlimited       "
      "     bytes\n",
      kStatus);
  REQUIRE(limit);
  CHECK(limit->name == "RLIMIT_AS");
  CHECK(limit->resident == Bytes{100000 * 1024 + (614400000 - 400000 * 1024)});
}

TEST_CASE("limits: of two the nearer one counts, and one that is passed leaves no room") {
  const auto nearer = parse_own_limit(
      "Max data size             204800000            unlimited            bytes\nMax address space         614400000  "
      "          unlimited            bytes\n",
      kStatus);
  REQUIRE(nearer);
  CHECK(nearer->name == "RLIMIT_DATA");
  CHECK(nearer->resident == Bytes{100000 * 1024 + (204800000 - 150000 * 1024)});
  CHECK(parse_own_limit("Max address space         4096                 4096                 bytes\n", kStatus)
            ->resident == Bytes{100000 * 1024});
}

TEST_CASE("limits: unlimited, and what cannot be read, is no limit") {
  CHECK_FALSE(
      parse_own_limit("Max data size             unlimited            unlimited            bytes\nMax address space    "
                      "     unlimited            unlimited            bytes\n",
                      kStatus));
  CHECK_FALSE(parse_own_limit("", ""));
  CHECK_FALSE(
      parse_own_limit("Max address space         614400000            unlimited            bytes\n", "VmSize:"));
}

}  // namespace
}  // namespace millpond::watch
