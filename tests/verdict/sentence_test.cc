#include "verdict/sentence.h"

#include <doctest/doctest.h>

#include "verdict/run.h"

namespace millpond::verdict {
namespace {

/// 300 MB at the first round, 700 from the second on; 400 of them are libraries and 180 what a line took in the first
/// round.
Run healthy() {
  Run run;
  std::vector<double> rss(12, 700);
  rss.front() = 300;
  run.rss(rss).live_from(250, 0);
  run.site({user("train.py", 12, "main")}, 180, Life::kOnce);
  run.evidence.process = 1;
  SeenProcess p{.row = 1,
                .pid = 7,
                .parent = 0,
                .name = "python3",
                .command = {},
                .start = 0,
                .end = {},
                .seen = "inside",
                .spaces = {},
                .pages = {},
                .mappings = {}};
  for (const Mark& m : run.evidence.marks) {
    p.pages.push_back({m.t, *m.rss, mb(300), {}, {}});
    p.mappings["library"].push_back({m.t, mb(900), mb(400), {}, {}});
  }
  run.evidence.processes.push_back(std::move(p));
  return run;
}

}  // namespace

TEST_CASE(
    "sentence: a healthy program is told by its level, since when, and what it is made of, and no bytes are told "
    "twice") {
  const Verdict v = healthy().judged();
  CHECK(
      v.sentence ==
      "No leak: flat at 668 MiB since epoch 1; 381 MiB of it are libraries, 172 MiB taken by the program's own lines.");
  // Bytes that were taken once are not a second finding of the same kind.
  int reserves = 0;
  for (const Finding& f : v.findings) reserves += f.kind == Kind::kReserve;
  CHECK(reserves <= 1);
}

TEST_CASE("sentence: blocks that were asked for and never written to are not told as taken") {
  Run run = healthy();
  // A line has 500 MB of blocks, and the process 300 MB of memory without a file behind it.
  run.evidence.sites.clear();
  for (Mark& m : run.evidence.marks) m.sites.clear(), m.rss = mb(700);
  run.baseline(700);
  run.site({user("train.py", 12, "main")}, 500, Life::kOnce);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kReserve);
  CHECK(v.findings.front().total == mb(300));
}

TEST_CASE("sentence: flat is not said of a level that still rises") {
  Run run;
  run.grow(500, 10, 40).live_from(300, 9);
  run.site({user("p.py", 44, "step")}, 9, Life::kLeak);
  CHECK(run.judged().sentence.find("flat") == std::string::npos);
}

}  // namespace millpond::verdict
