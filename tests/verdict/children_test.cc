#include "verdict/children.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "verdict/run.h"

namespace millpond::verdict {
namespace {

Evidence worker(double mb_per_round, int line, int64_t row) {
  Run run("task", 1);
  run.grow(60, mb_per_round, 30)
      .live_from(30, mb_per_round)
      .site({Frame{"work.py", "load", line, false, true}}, mb_per_round, Life::kLeak);
  run.evidence.process = row;
  return run.evidence;
}
Run parent() {
  Run run;
  run.grow(100, 0, 20).live_from(60, 0);
  run.evidence.process = 1;
  run.evidence.processes = {{.row = 1,
                             .pid = 10,
                             .parent = 1,
                             .name = "python",
                             .command = {},
                             .start = 0,
                             .end = {},
                             .seen = "inside",
                             .spaces = {}},
                            {.row = 2,
                             .pid = 11,
                             .parent = 10,
                             .name = "python",
                             .command = {},
                             .start = 0,
                             .end = {},
                             .seen = "inside",
                             .spaces = {}}};
  return run;
}
Verdict judged(const Run& run, const std::vector<Evidence>& children) {
  Verdict v = judge(run.evidence);
  add_children(run.evidence, children, v);
  return v;
}

}  // namespace

TEST_CASE("children: pages that workers copy while they take nothing themselves are no leak, and have no forecast") {
  Run copies;
  std::vector<double> tree;
  for (int i = 0; i < 20; ++i) tree.push_back(700 + 30 * i);
  copies.grow(600, 0, 20).tree(tree, 3).limit("machine", 8000);
  CHECK(judge(copies.evidence).findings.front().cause == "C24");
  const Verdict v = judged(copies, {worker(0, 31, 2), worker(0, 31, 3)});
  CHECK(v.kind == Kind::kCache);
  CHECK(v.findings.front().cause == "C24");
  CHECK(!v.findings.front().forecast);
  CHECK(v.sentence.find("no more than one copy") != std::string::npos);
}

TEST_CASE("children: ranks that do as the main process does are told with it") {
  Run rank("epoch", 1);
  rank.grow(60, 2, 30).live_from(30, 2).site({Frame{"work.py", "load", 31, false, true}}, 2, Life::kLeak);
  const Verdict v = judged(rank, {rank.evidence, rank.evidence});
  CHECK(v.kind == Kind::kLeak);
  CHECK(v.findings.front().processes == 3);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(2e6).epsilon(0.05));
  CHECK(std::ranges::count_if(v.findings, [](const Finding& f) { return f.kind == Kind::kLeak; }) == 1);
}

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

TEST_CASE("children: what a worker holds and is no leak is told where the main process has nothing to tell") {
  Run keeps("task", 1);  // free in the allocator, and given back by trim
  keeps.rss(std::vector<double>(30, 200)).live_from(60, 0).free(std::vector<double>(30, 120)).probe(8, 200, 200, 80);
  keeps.evidence.process = 2;
  const Verdict v = judged(parent(), {keeps.evidence});
  CHECK(v.kind == Kind::kRetention);
  CHECK(v.findings.front().process == 2);
  CHECK(v.sentence.find("In a process that it started") != std::string::npos);
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
