// The answer in a terminal: what a person reads, on one screen. Golden files lie in tests/report/golden;
// MILLPOND_WRITE_GOLDEN=1 writes them anew, for `git diff` to show.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "report/doctor.h"
#include "report/made_up.h"
#include "report/text.h"
#include "verdict/sentence.h"

using namespace millpond;
using namespace millpond::report;
using verdict::Kind;

namespace {

void check_golden(const std::string& name, const std::string& text) {
  const std::string path = "tests/report/golden/" + name + ".txt";
  if (std::getenv("MILLPOND_WRITE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream file(path);
  std::ostringstream golden;
  golden << file.rdbuf();
  CHECK_MESSAGE(text == golden.str(), path);
}

/// Room for an empty line above and the file's name below.
void check_screen(const std::string& text, int width = 100, int height = 22) {
  CAPTURE(text);
  CHECK(std::count(text.begin(), text.end(), '\n') <= height);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(columns(line) <= size_t(width), line);
}

verdict::Verdict kept_list() {
  verdict::Verdict v = verdict_of(Kind::kLeak, 6.58 * kMiB);
  verdict::Finding& f = v.findings[0];
  f.title = "The list `Trainer.seen` keeps every list added to it";
  f.holder = "list Trainer.seen";
  f.blame = verdict::Place{"examples/leaky_training.py", "Trainer.train_on", "self.seen.append(batch)", 19};
  f.evidence = {
      "resident memory rises by 6.58 MiB every epoch (6.54 MiB to 6.66 MiB at 90 %), seen over 8 epochs after warm-up",
      "the list `Trainer.seen` has 96 items, 8 more every epoch"};
  f.fix =
      "Take out `self.seen.append(batch)`, keep a running number instead of the items, or bound it: `self.seen = "
      "collections.deque(maxlen=...)`.";
  f.threads = {"pytorch#1840", "pytorch#64586"};
  f.forecast =
      verdict::Forecast{"machine", Bytes{int64_t{24} << 30}, 180, {170, 190}, verdict::Unit::kEpoch, 3495.4, 3483};
  v.sentence =
      "Memory grows by 6.58 MiB every epoch: at `leaky_training.py:19` the list `Trainer.seen` keeps every list added "
      "to it. " +
      verdict::forecast_words(f);
  v.advice = {{"float64_data", "8.00 MiB of the data given to fit are float64.", {}}};
  return v;
}

const runfile::Meta kMeta = {{"sampling.samples", "1200"},
                             {"overhead.probe_cpu_s", "0.02"},
                             {"overhead.collector_cpu_s", "0.1"},
                             {"file_rss", "20000000"}};

}  // namespace

TEST_CASE("terminal: a leak is answered with its line, the fix and the forecast, each fact once") {
  const std::string text = doctor_text(made_up(8), kept_list(), kMeta, {});
  check_golden("leak", text);
  check_screen(text);
  for (const char* once : {"Trainer.seen`", "At this rate", "every epoch"}) {
    CAPTURE(once);
    CHECK(text.find(once) != text.npos);
    CHECK(text.find(once) == text.rfind(once));
  }
}
TEST_CASE("terminal: with -v the evidence, the rate, addresses of threads and what was measured come too") {
  const std::string text = doctor_text(made_up(8), kept_list(), kMeta, {.verbose = true});
  check_golden("leak_verbose", text);
  for (const char* word :
       {"because ", "rate ", "advice ", "measured ", "explained ", "https://github.com/pytorch/pytorch/issues/1840"})
    CHECK_MESSAGE(text.find(word) != text.npos, word);
}
TEST_CASE("terminal: flat, unsure and too short to judge") {
  verdict::Verdict flat = verdict_of(Kind::kFlat);
  flat.sentence = "Memory is flat: 200 MiB after the first epoch, 200 MiB after the last (10 seen).";
  check_golden("flat", doctor_text(made_up(0), flat, kMeta, {}));
  verdict::Verdict unsure = verdict_of(Kind::kUnsure);
  unsure.would_settle = "run 10 more epochs";
  unsure.sentence =
      "Memory rose by 40.0 MiB after warm-up, and nothing shows yet whether that is a leak: run 10 more epochs.";
  check_golden("unsure", doctor_text(made_up(4), unsure, kMeta, {}));
  verdict::Evidence short_run;
  short_run.command = "ls /nonexist", short_run.seconds = 0.005, short_run.exit_code = 2;
  check_golden("too_short", doctor_text(short_run, verdict::judge(short_run), {}, {}));
}
TEST_CASE(
    "terminal: the kernel's high-water mark is the peak, and the highest that was sampled stands beside it where it is "
    "another") {
  verdict::Evidence e = made_up(8);
  e.sampled_peak = e.peak_rss;
  CHECK(doctor_text(e, verdict_of(Kind::kFlat), {}, {.color = false, .width = 140})
            .find("208 MiB to 280 MiB in the last epoch, peak 280 MiB, 11 s") != std::string::npos);
  e.peak_rss = Bytes{320 * kMiB};
  e.tree_peak = Bytes{500 * kMiB};
  e.process = 1;
  for (int64_t row = 1; row <= 3; ++row)
    e.processes.push_back({.row = row,
                           .pid = 70 + row,
                           .parent = 1,
                           .name = "python3",
                           .command = "",
                           .start = 0.1,
                           .end = {},
                           .seen = "inside",
                           .spaces = {}});
  e.processes.push_back({.row = 4,
                         .pid = 9,
                         .parent = 1,
                         .name = "sh",
                         .command = "",
                         .start = 0,
                         .end = {},
                         .seen = "outside",
                         .spaces = {}});
  const std::string text = doctor_text(e, verdict_of(Kind::kFlat), {}, {.color = false, .width = 140});
  CHECK(text.find("peak 320 MiB (highest that was sampled: 280 MiB), 11 s") != text.npos);
  CHECK(text.find("with 3 processes 500 MiB at most, of what was sampled") != text.npos);
  verdict::Evidence less = e;
  less.tree_peak.reset();
  CHECK(doctor_text(less, verdict_of(Kind::kFlat), {}, {.color = false, .width = 140})
            .find("with 3 processes: together they were not seen to hold more") != std::string::npos);
  const nlohmann::ordered_json j = doctor_json(e, verdict_of(Kind::kFlat), {});
  CHECK(j["peak_rss"] == 320 * kMiB);
  CHECK(j["sampled_peak"] == 280 * kMiB);
  CHECK(j["tree_peak"] == 500 * kMiB);
}
TEST_CASE(
    "terminal: whatever is found, the answer fits on 24 lines of 60, 80 and 100 columns, and on what a check leaves of "
    "them") {
  std::mt19937 random(7);
  const auto words = [&](int most) {
    std::string text;
    for (int n = int(random() % unsigned(most)); n >= 0; --n)
      text += std::string(1 + random() % 14, char('a' + random() % 26)) + (random() % 9 ? " " : "\n");
    return text;
  };
  for (int i = 0; i < 400; ++i) {
    verdict::Evidence e = made_up(8);
    e.signal = i % 3 ? std::optional(9) : std::nullopt;
    e.tree_peak = i % 2 ? std::optional(Bytes{500 * kMiB}) : std::nullopt;
    e.peak_rss = Bytes{(280 + i % 2 * 50) * kMiB}, e.sampled_peak = Bytes{280 * kMiB};
    for (int64_t g = 0; g < i % 5; ++g) {
      verdict::Gpu gpu{g, words(4), Bytes{1024 * kMiB}, Bytes{96 * kMiB}, {}, {}};
      gpu.points.push_back({1, Bytes{32 * kMiB}, {}});
      e.gpus.push_back(gpu);
    }
    verdict::Verdict v = kept_list();
    v.sentence = words(120), v.findings[0].fix = words(200), v.findings[0].title = words(30);
    v.findings[0].blame = verdict::Place{"/" + words(20), words(20), words(60), int(random() % 100000)};
    for (int k = 0; k < i % 4; ++k) v.findings.push_back(v.findings[0]);
    v.would_settle = i % 7 ? "" : words(40);
    const std::string remarks = words(80);
    for (const int width : {60, 80, 100})
      for (const int height : {24, 17}) {
        CAPTURE(width);
        const std::string text = doctor_text(e, v, {{"remarks", remarks}}, {.width = width, .height = height});
        check_screen(text, width, height - 2);
      }
  }
}
TEST_CASE("terminal: what is left out is said to be") {
  CHECK(clipped("a b\nc d\ne f\n", 2) == "a b\nc d ...\n");
  CHECK(clipped("a b\nc d\ne f\n", 2, 5) == "a b\nc ...\n");
  CHECK(clipped("a b\nc d\n", 2) == "a b\nc d\n");
  CHECK(clipped("a\nb\n", 0) == "a\nb\n");
  CHECK(clipped("alone\nb\n", 1, 5) == "alone ...\n");
}
TEST_CASE("terminal: a sampled sum comes with its error, one that was counted does not") {
  constexpr double kInterval = 512 << 10;
  // 1,000 blocks of 64 KiB, taken with p = 1 - exp(-1/8): the deviation of the estimate is 64 KiB sqrt(1000 (1 - p) /
  // p).
  const double p = 1 - std::exp(-0.125);
  CHECK(sampling_error(Bytes{1000 * 65536}, 1000, kInterval) ==
        doctest::Approx(1.96 * 65536 * std::sqrt(1000 * (1 - p) / p)).epsilon(1e-9));
  CHECK(sampling_error(Bytes{8 * kMiB}, 8, kInterval) == 0);
  CHECK(sampling_error(Bytes{8 * kMiB}, 80, 0) == 0);
  CHECK(with_error(Bytes{44 * kMiB}, 2.0 * kMiB) == "44.0 MiB ± 2.00 MiB");
  CHECK(with_error(Bytes{44 * kMiB}, 0) == "44.0 MiB");
}
TEST_CASE("sparkline: the noise of a flat run is not drawn as hills") {
  CHECK(sparkline({100, 103, 99, 102, 100, 103}, 6) == "▄▅▄▅▄▅");
  CHECK(sparkline({100, 200, 300, 400}, 4) == "▁▃▆█");
}
