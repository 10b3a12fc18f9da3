#include "verdict/files.h"

#include <doctest/doctest.h>

#include "verdict/run.h"

namespace millpond::verdict {
namespace {

Verdict judged_with_files(double mb_per_second) {
  Run run("epoch", 2);
  run.grow(100, 0, 20).live_from(60, 0);
  run.evidence.growing_file = "/dev/shm/ring";
  for (int i = 0; i < 40; ++i) run.evidence.loose_files.emplace_back(20.0 + i, mb(5 + mb_per_second * i));
  Verdict v = judge(run.evidence);
  add_files(run.evidence, v);
  return v;
}

}  // namespace

TEST_CASE("files: a file in shared memory that grows is a leak of its own space, told by rounds") {
  const Verdict v = judged_with_files(1);
  CHECK(v.kind == Kind::kLeak);
  REQUIRE(!v.findings.empty());
  CHECK(v.findings.front().space == "shared");
  CHECK(v.findings.front().holder == "/dev/shm/ring");
  CHECK(v.findings.front().unit == Unit::kEpoch);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(2e6).epsilon(0.05));
  CHECK(v.sentence.find("/dev/shm/ring") != std::string::npos);
}

TEST_CASE("files: those that stay as they are change nothing") { CHECK(judged_with_files(0).kind == Kind::kFlat); }

}  // namespace millpond::verdict
