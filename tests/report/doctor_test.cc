#include <doctest/doctest.h>

#include "report/doctor.h"
#include "report/made_up.h"

using namespace millpond;
using namespace millpond::report;
using verdict::Kind;

TEST_CASE("doctor: one screen with the answer, the line, and what was measured") {
  const std::string text = doctor_text(made_up(8), verdict_of(Kind::kLeak, 8.0 * kMiB), {}, {.verbose = true});
  CHECK(text.starts_with("millpond: LEAK\n  Told by a test.\n"));
  CHECK(text.find("  rate      8.00 MiB every epoch (7.20 MiB to 8.80 MiB), seen over 8 epochs, 64.0 MiB in all\n") !=
        text.npos);
  CHECK(text.find("  line      project/a/train.py:12 in Keeper.on_epoch_end\n                self.kept.append(x)\n") !=
        text.npos);
  CHECK(text.find('\033') == text.npos);
}
TEST_CASE("doctor: what is explained is never cut to what is resident: parts that are more together are told as that") {
  const auto told = [](const char* files) {
    return doctor_text(made_up(8), verdict_of(Kind::kFlat), {{"file_rss", files}},
                       {.color = false, .width = 400, .verbose = true});
  };
  CHECK(told("20971520").find("  explained 260 MiB of 280 MiB (92.9 %): in use 230 MiB") != std::string::npos);
  const std::string text = told("209715200");
  CHECK(text.find("  explained 440 MiB have a name, 160 MiB more than the 280 MiB that were resident") != text.npos);
  CHECK(text.find("100.0 %") == text.npos);
  CHECK(doctor_json(made_up(8), verdict_of(Kind::kFlat), {{"file_rss", "209715200"}})["explained"]["overlap"] ==
        160 * kMiB);
  CHECK(
      doctor_json(made_up(8), verdict_of(Kind::kFlat), {{"file_rss", "209715200"}})["explained_share"].get<double>() ==
      doctest::Approx(440.0 / 280));
}
TEST_CASE("doctor: colours only where they are wanted") {
  CHECK(doctor_text(made_up(8), verdict_of(Kind::kLeak, 1e6), {}, {true, 100}).find("\033[1;31m") != std::string::npos);
}
TEST_CASE("doctor: words of strangers cannot reach the terminal") {
  verdict::Verdict v = verdict_of(Kind::kLeak, 1e6);
  v.sentence = "leak at \033[2Jx\a.py";
  verdict::Finding& f = v.findings[0];
  f.title = "\033]0;t\a",
  f.holder =
      "\x9b"
      "6n",
  f.evidence = {"e\rv"}, f.fix = "do\n  this\b", f.threads = {"a\033b"};
  f.blame = verdict::Place{"\033[31m.py", "f\n\033g", "x\033y", 3};
  v.advice.push_back({"what", "try \033c", f.blame});
  v.would_settle = "longer\033";
  const std::string text = doctor_text(made_up(8), v, {{"remarks", "not \033 seen"}}, {}) +
                           doctor_text(made_up(8), v, {{"remarks", "not \033 seen"}}, {.verbose = true});
  CHECK(text.find('\033') == text.npos);
  for (const char c : text) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  CHECK(text.find("  fix       do\n              this?\n") != text.npos);
}
TEST_CASE("doctor: as JSON the fields that tools read are there") {
  const nlohmann::ordered_json j = doctor_json(made_up(8), verdict_of(Kind::kLeak, 8.0 * kMiB), {});
  for (const char* key : {"verdict", "sentence", "program", "seconds", "peak_rss", "baseline_rss", "explained_share",
                          "overhead", "dropped_events", "phases", "findings"})
    CHECK_MESSAGE(j.contains(key), key);
  CHECK(j["phases"]["epoch"] == 10);
  CHECK(j["findings"][0]["blame"]["line"] == 12);
}
TEST_CASE("doctor: GPUs in totals, with what the driver does not tell, and none that the program does not use") {
  verdict::Evidence e = made_up(0);
  CHECK(doctor_json(e, verdict_of(Kind::kFlat), {})["gpu"] == nlohmann::ordered_json::array());
  CHECK(doctor_text(e, verdict_of(Kind::kFlat), {}, {}).find("gpu") == std::string::npos);
  const auto gpu = [](int64_t device, std::optional<Bytes> peak) {
    verdict::Gpu g{device, "NVIDIA H200", Bytes{1024 * kMiB}, Bytes{96 * kMiB}, peak, {}};
    for (int i = 0; i < 3; ++i)
      g.points.push_back(
          {double(i), Bytes{(32 + 32 * i) * kMiB}, peak ? std::optional(Bytes{i * peak->value / 4}) : std::nullopt});
    return g;
  };
  e.gpus = {gpu(0, Bytes{64 * kMiB}), gpu(1, Bytes{}), gpu(2, {})};
  const std::string text = doctor_text(e, verdict_of(Kind::kFlat), {}, {.color = false, .width = 140});
  CHECK(text.find("  gpu 0     NVIDIA H200: program 64.0 MiB at most of 1.00 GiB; first 0 B, last 32.0 MiB  ▁▄█\n") !=
        text.npos);
  CHECK(text.find("gpu 1") == text.npos);
  CHECK(
      text.find("  gpu 2     NVIDIA H200: all programs 96.0 MiB at most of 1.00 GiB; first 32.0 MiB, last 96.0 MiB") !=
      text.npos);
  CHECK(text.find("how much of it is this program's the driver does not tell here") != text.npos);
  CHECK(text.find("totals from the driver: what grows on a GPU is not told by line") != text.npos);
  const nlohmann::ordered_json j = doctor_json(e, verdict_of(Kind::kFlat), {})["gpu"];
  REQUIRE(j.size() == 3);
  CHECK(j[0]["by_program_peak"] == 64 * kMiB);
  CHECK(j[0]["by_program_last"] == 32 * kMiB);
  CHECK(j[0]["used_first"] == 32 * kMiB);
  CHECK(j[1]["by_program_peak"] == 0);
  CHECK(j[2]["by_program_peak"].is_null());
  CHECK(j[2]["used_peak"] == 96 * kMiB);
}
TEST_CASE("sparkline: flat is flat, and a rise ends high") {
  CHECK(sparkline({5, 5, 5}, 10) == "▄▄▄");
  CHECK(sparkline({0, 7}, 10) == "▁█");
  CHECK(sparkline({}, 10) == "");
}
