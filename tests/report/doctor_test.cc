#include <doctest/doctest.h>

#include "report/doctor.h"
#include "report/made_up.h"

using namespace millpond;
using namespace millpond::report;
using verdict::Kind;

TEST_CASE("doctor: one screen with the answer, the line, and what was measured") {
  const std::string text = doctor_text(made_up(8), verdict_of(Kind::kLeak, 8.0 * kMiB), {}, {});
  CHECK(text.starts_with("millpond: LEAK\n  Told by a test.\n"));
  CHECK(text.find("  rate      8.00 MiB per epoch (7.20 MiB to 8.80 MiB), seen over 8, 64.0 MiB in all\n") != text.npos);
  CHECK(text.find("  line      project/a/train.py:12 in Keeper.on_epoch_end\n                self.kept.append(x)\n") != text.npos);
  CHECK(text.find('\033') == text.npos);
}
TEST_CASE("doctor: colours only where they are wanted") {
  CHECK(doctor_text(made_up(8), verdict_of(Kind::kLeak, 1e6), {}, {true, 100}).find("\033[1;31m") != std::string::npos);
}
TEST_CASE("doctor: words of strangers cannot reach the terminal") {
  verdict::Verdict v = verdict_of(Kind::kLeak, 1e6);
  v.sentence = "leak at \033[2Jx\a.py";
  verdict::Finding& f = v.findings[0];
  f.title = "\033]0;t\a", f.holder = "\x9b" "6n", f.evidence = {"e\rv"}, f.fix = "do\n  this\b", f.threads = {"a\033b"};
  f.blame = verdict::Place{"\033[31m.py", "f\n\033g", "x\033y", 3};
  v.advice.push_back({"what", "try \033c", f.blame});
  v.would_settle = "longer\033";
  const std::string text = doctor_text(made_up(8), v, {{"remarks", "not \033 seen"}}, {});
  CHECK(text.find('\033') == text.npos);
  for (const char c : text) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  CHECK(text.find("  fix       do\n              this?\n") != text.npos);
}
TEST_CASE("doctor: as JSON the fields that tools read are there") {
  const nlohmann::ordered_json j = doctor_json(made_up(8), verdict_of(Kind::kLeak, 8.0 * kMiB), {});
  for (const char* key : {"verdict", "sentence", "program", "seconds", "peak_rss", "baseline_rss", "explained_share", "overhead", "dropped_events", "phases", "findings"})
    CHECK_MESSAGE(j.contains(key), key);
  CHECK(j["phases"]["epoch"] == 10);
  CHECK(j["findings"][0]["blame"]["line"] == 12);
}
TEST_CASE("sparkline: flat is flat, and a rise ends high") {
  CHECK(sparkline({5, 5, 5}, 10) == "▄▄▄");
  CHECK(sparkline({0, 7}, 10) == "▁█");
  CHECK(sparkline({}, 10) == "");
}
