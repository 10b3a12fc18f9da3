#include "verdict/children.h"

#include <doctest/doctest.h>

#include "verdict/run.h"

namespace millpond::verdict {
namespace {

Evidence worker(double mb_per_round, int line, int64_t row) {
  Run run("task", 1);
  run.grow(60, mb_per_round, 30).live_from(30, mb_per_round).site({Frame{"work.py", "load", line, false, true}}, mb_per_round, Life::kLeak);
  run.evidence.process = row;
  return run.evidence;
}
Run parent() {
  Run run;
  run.grow(100, 0, 20).live_from(60, 0);
  run.evidence.process = 1;
  run.evidence.processes = {{.row = 1, .pid = 10, .parent = 1, .name = "python", .command = {}, .start = 0, .end = {}, .seen = "inside", .spaces = {}},
                            {.row = 2, .pid = 11, .parent = 10, .name = "python", .command = {}, .start = 0, .end = {}, .seen = "inside", .spaces = {}}};
  return run;
}
Verdict judged(const Run& run, const std::vector<Evidence>& children) {
  Verdict v = judge(run.evidence);
  add_children(run.evidence, children, v);
  return v;
}

}  // namespace

TEST_CASE("children: four workers that leak at one line are told as one, with the rate of one of them") {
  const Verdict v = judged(parent(), {worker(2, 31, 2), worker(2, 31, 3), worker(2, 31, 4), worker(2, 31, 5)});
  CHECK(v.kind == Kind::kLeak);
  REQUIRE(!v.findings.empty());
  const Finding& f = v.findings.front();
  CHECK(f.processes == 4);
  CHECK(f.unit == Unit::kTask);
  CHECK(f.bytes_per_unit == doctest::Approx(2e6).epsilon(0.05));
  CHECK(f.blame->line == 31);
  CHECK(v.sentence.find("4 processes, by 1.91 MiB every task each") != std::string::npos);
}

TEST_CASE("children: one rank of four leaks, and is told by its process") {
  const Verdict v = judged(parent(), {worker(0, 31, 2), worker(0, 31, 3), worker(3, 44, 4), worker(0, 31, 5)});
  CHECK(v.kind == Kind::kLeak);
  CHECK(v.findings.front().process == 4);
  CHECK(v.findings.front().processes == 1);
  CHECK(v.findings.front().blame->line == 44);
}

TEST_CASE("children: a leak of the main process stays first, and flat children change nothing") {
  Run own;
  own.grow(500, 10, 30).live_from(300, 10).site({Frame{"main.py", "main", 7, false, true}}, 10, Life::kLeak);
  own.evidence.process = 1;
  const Verdict both = judged(own, {worker(2, 31, 2)});
  REQUIRE(both.findings.size() >= 2);
  CHECK(both.findings[0].blame->line == 7);
  CHECK(both.findings[1].blame->line == 31);
  CHECK(judged(parent(), {worker(0, 31, 2)}).kind == Kind::kFlat);
  CHECK(judged(parent(), {}).kind == Kind::kFlat);
}

}  // namespace millpond::verdict
