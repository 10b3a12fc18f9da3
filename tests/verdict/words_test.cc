// The words of a verdict: one function for one number, units that a reader knows, and threads that are about a program
// like his.
#include <doctest/doctest.h>

#include "verdict/causes/cause.h"
#include "verdict/numbers.h"
#include "verdict/run.h"
#include "verdict/sentence.h"
#include "verdict/threads.h"

using namespace millpond::verdict;
using namespace millpond;

namespace {

Finding with_forecast(double seconds, Interval range, Unit unit, std::optional<double> index, double left) {
  Finding f;
  f.unit = unit;
  f.forecast = Forecast{"machine", Bytes{int64_t{8} << 30}, seconds, range, unit, index, left};
  return f;
}

Run leaking(const char* kind = "epoch") {
  Run run(kind);
  return run.grow(600, 10, 24)
      .live_from(300, 10)
      .probe(4, 630, 630, 626)
      .probe(8, 670, 670, 666)
      .probe(16, 750, 750, 746);
}

}  // namespace

TEST_CASE("words: durations") {
  CHECK(duration(0.005) == "5 ms");
  CHECK(duration(0.42) == "0.4 s");
  CHECK(duration(2) == "2 s");
  CHECK(duration(90) == "90 s");
  CHECK(duration(3000) == "50 min");
  CHECK(duration(2.4 * 3600) == "2.4 h");
  CHECK(duration(2 * 3600) == "2 h");
  CHECK(duration(30 * 3600) == "30 h");
  CHECK(duration(3.5 * 86400) == "3.5 days");
  CHECK(duration(4000 * 86400.0) == "4,000 days");
}
TEST_CASE("words: numbers and nouns") {
  CHECK(number(5000) == "5,000");
  CHECK(number(1) == "1");
  CHECK(number(2.46) == "2.5");
  CHECK(number(1234567) == "1,234,567");
  CHECK(number(0.25) == "0.3");
  CHECK(counted(1, "tensor") == "1 tensor");
  CHECK(counted(0.9999, "tensor") == "1 tensor");
  CHECK(counted(3, "tensor") == "3 tensors");
  CHECK(counted(2, "batch") == "2 batches");
  CHECK(counted(0, "sample") == "0 samples");
  CHECK(each(Unit::kLine) == "every printed line");
  CHECK(each(Unit::kEpoch) == "every epoch");
}
TEST_CASE("words: a forecast whose ends read alike has no range, and its round is that of the rate") {
  CHECK(forecast_words(with_forecast(3000, {2990, 3010}, Unit::kEpoch, 490.3, 480)) ==
        "At this rate the limit of 8.00 GiB (what this machine has free) is reached in epoch 491, in about 50 min.");
  CHECK(forecast_words(with_forecast(2.4 * 3600, {2.1 * 3600, 2.9 * 3600}, Unit::kLine, 647, 620)) ==
        "At this rate the limit of 8.00 GiB (what this machine has free) is reached after 620 more printed lines, in "
        "about 2.4 h (2.1 h to 2.9 h).");
  CHECK(forecast_words(with_forecast(90, {90, 90}, Unit::kCall, {}, 0)) ==
        "At this rate the limit of 8.00 GiB (what this machine has free) is reached in about 90 s.");
  CHECK(forecast_words(Finding{}).empty());
}
TEST_CASE("words: the sentence ends with the very words of the forecast") {
  const Verdict v = leaking().limit("--limit", 8003).judged();
  REQUIRE(v.kind == Kind::kLeak);
  const std::string last = forecast_words(v.findings.front());
  CHECK(v.sentence.ends_with(" " + last));
  CHECK(last.find("(--limit)") != last.npos);
  CHECK(last.find("in epoch 741,") != last.npos);
  const nlohmann::json j = to_json(v);
  CHECK(j["findings"][0]["forecast_words"] == last);
  CHECK(j["findings"][0]["forecast"]["unit"] == "epoch");
}
TEST_CASE("words: growth that follows models is forecast in models, not in the lines that are printed") {
  Run run("line");
  run.grow(600, 20, 20)
      .live_from(300, 20)
      .unit(Unit::kModel, 0.5)
      .framework("tensorflow")
      .line("model", "a.py", 5, "main", "m = Sequential()", 10);
  for (Mark& m : run.evidence.marks) m.name = "fold #: loss #";
  run.probe(4, 660, 660, 655).probe(8, 740, 740, 735).probe(16, 900, 900, 895).limit("machine", 4980);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  const Finding& f = v.findings.front();
  REQUIRE(f.unit == Unit::kModel);
  REQUIRE(f.forecast);
  CHECK(f.forecast->unit == Unit::kModel);
  CHECK(f.forecast->units_left == doctest::Approx(100).epsilon(0.1));
  CHECK(v.sentence.find("more models,") != std::string::npos);
  CHECK(v.sentence.find("line") == std::string::npos);
}
TEST_CASE("words: a kept list reads as a sentence") {
  const Verdict v = leaking()
                        .holder("list", "list", 10, "Net.history", "project/long300.py", 14, "<module>",
                                "history.append(row)", nullptr, 5000)
                        .judged();
  CHECK(v.sentence.starts_with(
      "Memory grows by 9.54 MiB every epoch: at `long300.py:14` the list `Net.history` keeps every list added to it."));
  std::string evidence;
  for (const std::string& e : v.findings.front().evidence) evidence += e + "\n";
  CHECK(evidence.find("5,000 more every epoch") != evidence.npos);
  CHECK(evidence.find("e+") == evidence.npos);
}
TEST_CASE("words: one number of rounds, in the evidence as in the finding") {
  const Verdict v = leaking().judged();
  const Finding& f = v.findings.front();
  CHECK(f.evidence.front().find("seen over " + seen_over(f) + " after warm-up") != std::string::npos);
}
TEST_CASE("words: of a silent program the line is said to run, nothing is said to be called") {
  Run run("timer", 1);
  run.grow(50, 10, 24)
      .live_from(30, 10)
      .holder("list", "bytes", 10, "Archive.rows", "p.py", 6, "Archive.add", "self.rows.append(row)", nullptr, 5);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  const Finding& f = v.findings.front();
  CHECK(f.unit == Unit::kCall);
  CHECK(each(f) == "each time line 6 runs");
  CHECK(v.sentence.find("every call") == std::string::npos);
  CHECK(to_json(v)["findings"][0]["each"] == "each time line 6 runs");
}
TEST_CASE("words: of a healthy program the level and since when, no word of training, and no byte twice") {
  Run healthy;
  healthy.rss({300, 660, 719, 719, 720, 719, 719, 718, 719, 719, 719, 719}).baseline(100);
  const Verdict v = healthy.judged();
  REQUIRE(v.kind == Kind::kReserve);
  CHECK(v.sentence == "No leak: flat at 686 MiB since epoch 2; 590 MiB of it were taken once.");
  CHECK(v.findings.size() == 1);
  CHECK((v.sentence + v.findings.front().title).find("training") == std::string::npos);
  // a cache that has most of it is told alone
  Run cache;
  cache.rss({300, 660, 719, 719, 720, 719, 719, 718, 719, 719, 719, 719}).baseline(100);
  cache.note(
      R"({"note": "holders", "kind": "epoch", "containers": [{"type": "dict", "holder": "words", "length": 800000, "per_period": 400000,
    "bytes_per_period": 2e8, "still": true, "file": "v.py", "line": 13}]})");
  cache.note(R"({"note": "holders", "kind": "epoch", "containers": []})");
  const Verdict filled = cache.judged();
  REQUIRE(filled.kind == Kind::kCache);
  int64_t told = 0;
  for (const Finding& f : filled.findings) told += f.total.value;
  CHECK(told <= mb(720).value);
}
TEST_CASE("words: how often a function was traced is told once, with one number") {
  const char* said =
      R"x({"note": "advice", "what": "retracing", "file": "w.py", "line": 49, "function": "main", "text": "step(x)", "count": 6})x";
  Run flat;
  flat.rss(std::vector<double>(12, 600)).note(said).traced("w.py", 49, "literal", 81);
  const Verdict calm = flat.judged();
  REQUIRE(calm.advice.size() == 1);
  CHECK(calm.advice[0].text.starts_with("a tf.function was traced 81 times under w.py:49"));
  Run leaks = leaking();
  leaks.framework("tensorflow").counter("tf.traces", 0, 4).note(said).traced("w.py", 49, "literal", 92);
  const Verdict v = leaks.judged();
  REQUIRE(v.findings.front().blame);
  REQUIRE(v.findings.front().blame->line == 49);
  CHECK(v.advice.empty());
  std::string evidence;
  for (const std::string& e : v.findings.front().evidence) evidence += e + "\n";
  CHECK(evidence.find("were traced ") == evidence.rfind("were traced "));
}
TEST_CASE("words: nothing is said of a program whose memory was never looked at") {
  Evidence e;
  e.seconds = 0.004;
  const Verdict v = judge(e);
  CHECK(v.kind == Kind::kUnsure);
  CHECK(v.too_short);
  CHECK(v.sentence == "Too short to judge: the program ran for 4 ms, and its memory was never looked at.");
  CHECK(to_json(v)["too_short"] == true);
}
TEST_CASE("words: --no-probes is advised against to those who used it") {
  Run run;
  run.grow(600, 20, 20);
  CHECK(run.judged().would_settle == "run 20 more epochs");
  run.evidence.probes_off = true;
  CHECK(run.judged().would_settle.find("--no-probes") != std::string::npos);
}
TEST_CASE("words: threads are of the frameworks that the program uses, at most two, with their addresses") {
  const std::vector<std::string> all = {"rabbityl/lepard#12", "tensorflow#34876", "pytorch#1840", "pytorch#64586",
                                        "matplotlib#8519"};
  CHECK(fitting_threads(all, Notes{}) == std::vector<std::string>{"matplotlib#8519"});
  Run torch, tensorflow;
  torch.framework("torch"), tensorflow.framework("tensorflow");
  CHECK(fitting_threads(all, read_notes(torch.evidence)) ==
        std::vector<std::string>{"rabbityl/lepard#12", "pytorch#1840"});
  CHECK(fitting_threads(all, read_notes(tensorflow.evidence)) ==
        std::vector<std::string>{"tensorflow#34876", "matplotlib#8519"});
  CHECK(thread_address("tensorflow#34876") == "https://github.com/tensorflow/tensorflow/issues/34876");
  CHECK(thread_address("keras#1") == "https://github.com/keras-team/keras/issues/1");
  CHECK(thread_address("nobody#1").empty());
}
TEST_CASE("words: every thread of every cause has an address") {
  for (const Cause* cause : causes())
    for (const std::string& thread : cause->threads) CHECK_MESSAGE(!thread_address(thread).empty(), thread);
}
