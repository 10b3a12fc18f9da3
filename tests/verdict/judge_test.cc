// What holds for every verdict: order, forecast, words, JSON, and doubt where doubt is due.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "verdict/notes.h"
#include "verdict/run.h"
#include "verdict/sites.h"

using namespace millpond::verdict;
using namespace millpond;

namespace {

Run leaking() {
  Run run;
  return run.grow(600, 10, 24)
      .live_from(300, 10)
      .probe(4, 630, 630, 626)
      .probe(8, 670, 670, 666)
      .probe(16, 750, 750, 746);
}

}  // namespace

TEST_CASE("judge: nothing in, no verdict out, and no crash") {
  const Verdict v = judge({});
  CHECK(v.too_short);
  CHECK(v.findings.empty());
  CHECK_FALSE(v.sentence.empty());
}

TEST_CASE("judge: a few rounds that rise are unsure, and it says what would settle it") {
  const Verdict v = Run().grow(600, 40, 4).judged();
  CHECK(v.kind == Kind::kUnsure);
  CHECK(v.would_settle.find("more epoch") != std::string::npos);
  CHECK(Run().grow(600, 0.1, 4).judged().kind == Kind::kFlat);
}

TEST_CASE("judge: growth in resident memory alone is never called a leak") {
  const Verdict v = Run().grow(600, 20, 20).judged();
  CHECK(v.kind == Kind::kUnsure);
  CHECK(v.would_settle.find("more epochs") != std::string::npos);
}

TEST_CASE(
    "judge: the rate is what is kept where resident memory lags behind it after a probe, not where pages are never "
    "touched") {
  // As measured: a list of torch tensors of 25.2 MB every epoch; trim gives back the free pages between them, which
  // later ones take first.
  const std::vector<double> resident = {298.9, 338.7, 389.1, 439.5, 489.9, 443.7, 468.9, 494.1, 494.2, 519.4};
  Run lags;
  lags.rss(resident).live_from(98, 25.2).probe(5, 489.9, 489.9, 386.0).probe(8, 494.1, 494.1, 462.0);
  const Verdict v = lags.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(25.2e6).epsilon(0.02));

  Run untouched;
  untouched.rss({300, 302, 312, 314, 318, 332, 334, 336, 350, 354, 356, 370})
      .live_from(98, 25.2)
      .probe(4, 314, 314, 313)
      .probe(8, 336, 336, 335);
  const Verdict w = untouched.judged();
  REQUIRE(w.kind == Kind::kLeak);
  CHECK(w.findings.front().bytes_per_unit < 10e6);
}

TEST_CASE("judge: a leak has bytes per epoch with a range, and the nearest limit is forecast") {
  const Verdict v = leaking().limit("machine", 64000).limit("cgroup", 8000).judged();
  REQUIRE(v.kind == Kind::kLeak);
  const Finding& f = v.findings.front();
  CHECK(f.unit == Unit::kEpoch);
  CHECK(f.bytes_per_unit == doctest::Approx(10e6).epsilon(0.01));
  CHECK(f.bytes_per_unit_range.low <= f.bytes_per_unit);
  CHECK(f.bytes_per_unit_range.high >= f.bytes_per_unit);
  REQUIRE(f.forecast);
  CHECK(f.forecast->limit == "cgroup");
  CHECK(*f.forecast->unit_index == doctest::Approx(23 + (8000 - 830) / 10.0));
  CHECK(f.forecast->seconds == doctest::Approx(7170));
  CHECK(v.sentence.find("is reached in epoch 740") != std::string::npos);
}

TEST_CASE("judge: no forecast for what is no leak") {
  const Verdict v = Run().grow(600, 0, 20).live_from(300, 0).limit("machine", 64000).judged();
  for (const Finding& f : v.findings) CHECK_FALSE(f.forecast);
}

TEST_CASE("judge: the sentence of a kept list names function, line and container") {
  const Verdict v = leaking()
                        .holder("list", "ndarray", 10, "SavePredictions.saved", "project/train.py", 41,
                                "SavePredictions.on_epoch_end", "self.saved.append(preds)")
                        .judged();
  CHECK(v.sentence.starts_with(
      "Memory grows by 9.54 MiB every epoch: at `train.py:41` the list `SavePredictions.saved` keeps every ndarray "
      "added to it."));
}

TEST_CASE("judge: growth that follows models is told for each model") {
  Run run;
  run.grow(600, 20, 20)
      .live_from(300, 20)
      .unit(Unit::kModel, 0.5)
      .framework("tensorflow")
      .line("model", "a.py", 5, "main", "m = Sequential()", 10);
  run.probe(4, 660, 660, 655).probe(8, 740, 740, 735).probe(16, 900, 900, 895);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().unit == Unit::kModel);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(40e6).epsilon(0.1));
}

TEST_CASE("judge: epochs are preferred to lines, and a kind that came too seldom is passed over") {
  Run run = leaking();
  for (int i = 0; i < 100; ++i) {
    Mark m;
    m.t = i;
    m.kind = i % 40 ? "line" : "fit";
    m.period = true;
    m.rss = mb(100);
    run.evidence.marks.push_back(m);
  }
  CHECK(run.judged().findings.front().unit == Unit::kEpoch);
}

TEST_CASE("judge: the series that the agent followed is judged, by its own count of rounds") {
  Run run("line");
  run.grow(600, 20, 12)
      .live_from(300, 20)
      .probe(4, 660, 660, 655)
      .probe(8, 740, 740, 735)
      .note(R"({"note": "holders", "kind": "line", "containers": [], "types": []})");
  for (Mark& m : run.evidence.marks)
    m.name = "fold #: mse #", m.index = 2 * m.index + 2;  // every other round has a mark
  for (int i = 0; i < 30; ++i) {
    Mark m;
    m.t = 20 + 4 * i;
    m.kind = "epoch";
    m.name = "fit";
    m.index = i + 1;
    m.period = true;
    m.rss = mb(600);
    run.evidence.marks.push_back(m);
  }
  std::ranges::stable_sort(run.evidence.marks, {}, &Mark::t);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().unit == Unit::kLine);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(10e6).epsilon(0.05));
}

TEST_CASE("judge: a fit of one epoch is called an epoch") {
  Run run("fit");
  run.grow(600, 20, 12).live_from(300, 20).unit(Unit::kEpoch, 1).probe(4, 660, 660, 655).probe(8, 740, 740, 735);
  CHECK(run.judged().findings.front().unit == Unit::kEpoch);
}

TEST_CASE("judge: a leak's JSON has every field a reader may ask for") {
  const nlohmann::json j = to_json(
      leaking().limit("cgroup", 8000).holder("list", "ndarray", 10, "a.b", "t.py", 4, "f", "b.append(x)").judged());
  CHECK(j["verdict"] == "leak");
  const nlohmann::json& f = j["findings"][0];
  for (const char* key :
       {"verdict",    "cause",       "title",    "unit",         "bytes_per_unit", "bytes_per_unit_range",
        "units_seen", "total_bytes", "blame",    "holder",       "evidence",       "fix",
        "fix_change", "threads",     "forecast", "sets_verdict", "account",        "born",
        "chain",      "process",     "space"})
    CHECK(f.contains(key));
  CHECK(f["confidence"].is_null());  // it is not calibrated, so it is not told
  CHECK(f["blame"]["line"] == 4);
  CHECK(f["blame"]["snippet"] == "b.append(x)");
  CHECK(f["sets_verdict"] == true);
  CHECK(f["forecast"]["limit"] == "cgroup");
  const nlohmann::json flat = to_json(judge({}));
  CHECK(flat["findings"].empty());
  CHECK(flat["advice"].empty());
}

TEST_CASE("judge: notes that are broken or unknown are passed over") {
  Run run = leaking();
  for (const char* text : {"[]", "3", "{}", R"({"note": 5})", R"({"note": "holders", "containers": 7})",
                           R"({"note": "holders", "containers": [3, {"length": "x"}]})",
                           R"({"note": "lines", "calls": {"a": 1}})", R"({"note": "data", "arrays": [null]})",
                           R"({"note": "dataset"})", R"({"note": "advice"})", R"({"note": "probe", "gc_types": [1]})"})
    run.note(text);
  CHECK(run.judged().kind == Kind::kLeak);
}

TEST_CASE("judge: swap that grew is told") {
  Run run = leaking();
  run.evidence.os = {{0, mb(600), mb(0), {}, {}}, {100, mb(600), mb(500), {}, {}}};
  bool told = false;
  for (const Advice& a : run.judged().advice) told |= a.what == "swap";
  CHECK(told);
}

TEST_CASE("judge: memory that rises on a GPU is advice and never a verdict") {
  const auto told = [](auto megabytes, bool known = true, int n = 40) {
    Run run;
    run.rss(std::vector<double>(12, 600));
    Gpu gpu{0, "NVIDIA H200", mb(140000), mb(9000), {}, {}};
    if (known) gpu.by_tree_peak = mb(9000);
    for (int i = 0; i < n; ++i)
      gpu.points.push_back({double(i), mb(500 + megabytes(i)), known ? std::optional(mb(megabytes(i))) : std::nullopt});
    run.evidence.gpus = {gpu};
    const Verdict v = run.judged();
    CHECK(v.kind == Kind::kFlat);
    for (const Advice& a : v.advice)
      if (a.what == "gpu_growth") return a.text;
    return std::string();
  };
  const auto rising = [](int i) { return 1000 + 64.0 * i; };
  CHECK(told(rising).starts_with("The program's memory on GPU 0 (NVIDIA H200) rises over the whole run: from 1.5"));
  CHECK(told(rising).find("prove no leak") != std::string::npos);
  CHECK(told(rising, false).find("Whether it is the program's was not told by the driver.") != std::string::npos);
  CHECK(told([](int) { return 4000.0; }).empty());
  CHECK(told([](int i) { return i < 20 ? 1000.0 : 4000.0; }).empty());            // taken at one moment
  CHECK(told([](int i) { return 4000.0 + (i % 2 ? 300 : 0); }).empty());          // to and fro
  CHECK(told([](int i) { return i < 25 ? 1000 + 200.0 * i : 6000.0; }).empty());  // a pool that fills
  CHECK(told(rising, true, 10).empty());                                          // too short to tell
}

TEST_CASE("judge: what is freed among kept blocks is another number in every run, what is kept is not") {
  Run run;
  run.rss({314, 365, 415, 466, 418, 469, 519, 569, 519, 569})
      .baseline(290)
      .live_from(122, 25)
      .probe(4, 466, 466, 360)
      .probe(8, 569, 569, 461);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(25e6).epsilon(0.02));
}

TEST_CASE("judge: where free pages come and go, what is in use tells how much leaks") {
  Run run;
  std::vector<double> rss{299, 350, 367, 367, 319, 345, 345, 362, 337, 354, 362, 371, 354, 380, 380, 345,
                          337, 371, 397, 397, 405, 405, 388, 414, 414, 397, 432, 432, 371, 406, 406};
  std::vector<double> live{116.5, 125.1, 125.1, 125.1, 125.3, 133.8, 133.8, 133.8, 133.8, 142.4, 142.4,
                           142.4, 142.4, 151,   151,   151,   151,   159.5, 159.5, 159.6, 159.6, 168.1,
                           168.1, 168.1, 168.1, 176.7, 176.7, 176.7, 176.7, 185.3, 185.3};
  std::vector<double> free{36, 78, 95,  95,  86,  77,  77, 95,  95,  86, 95,  95,  77,  95,  95, 60,
                           52, 77, 103, 103, 112, 103, 86, 112, 112, 86, 120, 120, 129, 120, 103};
  run.rss(rss)
      .baseline(290)
      .live(live)
      .free(free)
      .probe(4, 367, 367, 273)
      .probe(8, 362, 362, 282)
      .probe(28, 432, 432, 325);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(2.14e6).epsilon(0.05));
}

TEST_CASE("judge: resident memory that rises by a hundredth while nothing more is in use is no question") {
  std::vector<double> resident;  // of 700 MB: by 0.5 MB in each round
  for (int i = 0; i < 20; ++i) resident.push_back(700 + 0.5 * i);
  const Verdict v = Run().rss(resident).live(std::vector<double>(20, 300)).probe(8, 703.5, 703.5, 702).judged();
  CHECK((v.kind == Kind::kFlat || v.kind == Kind::kReserve));
  for (double& r : resident) r += 4 * (r - 700);  // by 2.5 MB: more than it wanders by
  const Verdict more = Run().rss(resident).live(std::vector<double>(20, 300)).probe(8, 717, 717, 716).judged();
  CHECK(more.kind == Kind::kUnsure);
}

TEST_CASE("judge: what the last round alone took is neither flat nor a reserve, unless as much came and went before") {
  std::vector<double> in_use(20, 300), resident(20, 500);
  in_use.back() += 12, resident.back() += 12;
  CHECK(Run().rss(resident).live(in_use).judged().kind == Kind::kUnsure);
  in_use[9] += 12;
  CHECK(Run().rss(resident).live(in_use).judged().kind != Kind::kUnsure);
}

TEST_CASE("judge: what rose by more than a little after warm-up and then stayed is not called flat") {
  std::vector<double> in_use, resident;
  for (int i = 0; i < 40; ++i) in_use.push_back(300 + std::min(24, i)), resident.push_back(500 + std::min(24, i));
  const Verdict v = Run().rss(resident).live(in_use).judged();
  CHECK((v.kind == Kind::kReserve || v.kind == Kind::kCache));
}

TEST_CASE("judge: a leak says when what stays was allocated, and which part of the account it is") {
  Run run = leaking();
  run.site({user("p.py", 44, "step")}, 10, Life::kLeak);
  run.note(
      R"({"note": "walk", "kind": "epoch", "period": 20, "alive": 90e6, "reached": 80e6, "holders": [{"bytes": 80e6, "samples": 40, "items": 40, "how": "reached", "type": "list",
      "chain": ["global kept of p", "module p"], "length": 40, "born": [{"file": "p.py", "line": 44, "bytes": 80e6}], "births": [0,0,0,0,5,5,5,5,5,5,5,5,5,5,5,5]}]})");
  const Finding f = run.judged().findings.front();
  CHECK(f.account == "held");
  CHECK_FALSE(f.born_at);  // the same line
  REQUIRE(f.born);
  // Rounds of 10 s from 30 s on, and the walk at the twentieth: the fifth of sixteen parts of these 200 s is the first.
  CHECK(f.born->low == doctest::Approx(30 + 200 * 4 / 16.0));
  CHECK(f.born->high == doctest::Approx(230));
  Run bare = leaking();  // no walk, no samples: since it began
  const Finding g = bare.judged().findings.front();
  REQUIRE(g.born);
  CHECK(g.account == "in use");
  CHECK(g.born->high == doctest::Approx(bare.evidence.marks.back().t));
}

TEST_CASE("judge: what comes once in many batches is told by the line that runs, not by batches that bring nothing") {
  Run run("step", 0.1);
  run.grow(300, 1, 40).live_from(100, 1).unit(Unit::kBatch, 1);
  run.holder("list", "ndarray", 1, "kept", "t.py", 42, "run", "kept.append(x)", nullptr, 0.1);
  const Finding f = run.judged().findings.front();
  CHECK(f.unit == Unit::kCall);
  CHECK(f.bytes_per_unit == doctest::Approx(10e6).epsilon(0.02));
}

TEST_CASE("judge: what grows beside nothing else is all that allocators count, though items were weighed as less") {
  const auto judged = [](double other) {
    Run run;
    run.grow(300, 10 + other, 20).live_from(100, 10 + other).site({user("p.py", 25, "make")}, 7.8, Life::kLeak, 0.2);
    if (other > 0) run.site({user("p.py", 60, "fill")}, other, Life::kLeak);
    nlohmann::json holders = nlohmann::json::array();
    const auto add = [&](const char* name, double bytes, int line, bool ends) {
      holders.push_back({{"bytes", bytes},
                         {"samples", 60},
                         {"how", "reached"},
                         {"type", "dict"},
                         {"chain", {name}},
                         {"born", {{{"file", "p.py"}, {"line", line}, {"bytes", bytes}}}},
                         {"puts", {{{"file", "p.py"}, {"line", line - 1}, {"by", "counted"}}}},
                         {"bounded", ends ? nlohmann::json(9) : nlohmann::json()},
                         {"births", std::vector<double>(16, bytes / 16)}});
    };
    add("the cache of make", 150e6, 25, false);
    if (other > 0) add("attribute few of State", 20e6 * other, 60, true);
    run.note(nlohmann::json{{"note", "walk"},
                            {"kind", "epoch"},
                            {"period", 19},
                            {"alive", 150e6 + 20e6 * other},
                            {"reached", 150e6 + 20e6 * other},
                            {"holders", holders}}
                 .dump());
    const Verdict v = run.judged();
    REQUIRE(v.kind == Kind::kLeak);
    CHECK(v.findings.front().blame->line == 24);
    REQUIRE(v.findings.front().born_at);
    CHECK(v.findings.front().born_at->line == 25);
    return v.findings.front().bytes_per_unit;
  };
  CHECK(judged(0) == doctest::Approx(10e6).epsilon(0.02));
  CHECK(judged(2.5) == doctest::Approx(10e6).epsilon(0.02));  // what has a limit is not its
}

TEST_CASE("judge: resident memory that creeps while what is in use stands still is no leak") {
  Run run;
  run.rss({727, 758, 784, 807, 830, 852, 865, 868, 869.3, 869.5, 871.8, 875.4, 875.8, 876.1, 876.1, 878.7})
      .baseline(600)
      .live({296, 317, 336, 354, 372, 390, 397.7, 397.7, 397.9, 398, 398, 397.9, 397.9, 397.8, 397.9, 397.7})
      .probe(11, 871.8, 871.8, 869);
  CHECK(run.judged().kind == Kind::kCache);
}

TEST_CASE(
    "judge: what a library hands out of large pieces is kept by a container that was weighed, though malloc's use "
    "leaps") {
  // As measured: 3.56 MB of TensorFlow every round, out of pieces of 64 and 128 MiB.
  Run run;
  run.rss({760, 764, 768, 773, 778, 771, 775, 781, 786, 794, 794, 798,
           805, 809, 810, 815, 820, 827, 827, 832, 836, 839, 843, 852});
  run.live({206, 206, 206, 206, 206, 206, 206, 273, 274, 274, 274, 274,
            274, 274, 274, 274, 274, 274, 274, 274, 274, 274, 274, 414});
  run.baseline(153).probe(5, 778, 778, 762).probe(8, 781, 781, 775.5);
  CHECK(run.judged().kind == Kind::kLeak);  // what holds it is not known
  run.holder("list", "Example", 3.557, "Example.snapshots", "t.py", 34, "Example.__init__",
             "Example.snapshots.append(self)");
  const Verdict v = run.judged();
  CHECK(v.kind == Kind::kLeak);
  CHECK(first_line(v) == 34);
}

TEST_CASE("judge: the same in stairs, 8 MB in every fourth round") {
  std::vector<double> resident = {819.6, 819.7, 820.4, 820.4, 820.5, 830.5, 830.5, 808.1, 816.2, 816.3, 816.4, 817.4};
  std::vector<double> live(5, 190);
  for (int i = 12; i < 33; ++i) resident.push_back(825.5 + 8.1 * ((i - 12) / 4));
  while (live.size() < resident.size()) live.push_back(259);
  Run run;
  run.rss(resident).live(live).baseline(153).probe(7, 830.5, 830.5, 806).probe(11, 816.4, 816.4, 816);
  run.holder("list", "dict", 2, "items", "d.py", 37, "train_once", "items.append({...})", nullptr, 0.25);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(first_line(v) == 37);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(2e6).epsilon(0.15));
}

TEST_CASE("judge: the rate is what is kept where resident memory is ahead by what is free among it") {
  Run run;  // as measured: torch, whose aligned blocks are not used again
  std::vector<double> resident, free;
  for (int i = 0; i < 19; ++i) resident.push_back(276 + 10.6 * i), free.push_back(6 + 3.3 * i);
  run.rss(resident).live_from(93, 8.2).free(free).probe(4, 308, 308, 300).probe(8, 350, 350, 340);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(8.2e6).epsilon(0.02));
}

TEST_CASE(
    "judge: looks by the clock while a program starts are not its rounds, though the agent went by the clock later") {
  Run run("timer", 0.25);
  run.rss({47, 133, 185, 216, 235, 263, 274});
  run.note(R"({"note": "holders", "kind": "timer", "period": 8, "containers": [], "types": []})");
  CHECK(run.judged().kind == Kind::kUnsure);
  Run steps("step", 0.5);
  steps.rss({317, 333, 341, 341, 332, 333, 325, 317, 317, 318, 340, 340});
  for (Mark m : steps.evidence.marks) m.t += 10, run.evidence.marks.push_back(m);
  CHECK(run.judged().kind == Kind::kReserve);
}

TEST_CASE("judge: a buffer that doubles now and then is no leak") {
  Run run;
  run.rss({735, 738, 747, 747, 758, 762, 789, 793, 795, 796})
      .baseline(700)
      .live({278, 278, 295, 295, 330, 330, 330, 399, 399, 401})
      .probe(4, 747, 747, 744)
      .probe(8, 793, 793, 790);
  CHECK(run.judged().kind != Kind::kLeak);
  Run touched;  // an allocator takes ever larger pieces, and what is kept fills them bit by bit
  touched.rss({771, 826, 884, 938, 1000, 1054, 1106})
      .baseline(700)
      .live({172, 242, 380, 380, 657, 657, 657})
      .probe(4, 938, 938, 932)
      .holder("dict", "EagerTensor", 54, "Runner.states", "t.py", 40, "Runner.one_step", "self.states[key] = logits");
  CHECK(touched.judged().kind == Kind::kLeak);
  Run alike;  // the same in steps of one size
  alike.rss({735, 738, 765, 765, 792, 792, 819, 819, 846, 846})
      .baseline(700)
      .live({278, 278, 305, 305, 332, 332, 359, 359, 386, 386})
      .probe(4, 765, 765, 762)
      .probe(8, 819, 819, 816);
  CHECK(alike.judged().kind == Kind::kLeak);
}

TEST_CASE("judge: the limit comes as fast as resident memory rises between probes") {
  Run run;
  run.rss(
         {265, 276, 287, 298, 294, 305, 316, 327, 338, 349, 360, 371, 382, 393, 404, 355, 366, 377, 388, 399, 410, 421})
      .baseline(250)
      .live_from(112, 5.5)
      .probe(4, 298, 298, 283)
      .probe(15, 404, 404, 344)
      .limit("machine", 2000);
  const Verdict v = run.judged();
  REQUIRE(v.kind == Kind::kLeak);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(5.5e6).epsilon(0.02));
  REQUIRE(v.findings.front().forecast);
  CHECK(v.findings.front().forecast->seconds == doctest::Approx((2000 - 421) / 11.0 * 10).epsilon(0.05));
}

TEST_CASE("judge: in a silent program on a busy machine what was weighed tells the bytes of a call") {
  Run run("timer", 0.25);
  std::vector<double> stalls;
  for (int i = 0; i < 60; ++i) stalls.push_back(60 + std::min(100.0, i < 20 ? 4.6 * i : 92 + 0.2 * (i - 20)));
  run.rss(stalls).live(stalls).holder("list", "ndarray", 10, "samples", "t.py", 25, "log", "samples.append(item)",
                                      nullptr, 2);
  const Finding f = run.judged().findings.front();
  CHECK(f.unit == Unit::kCall);
  CHECK(f.bytes_per_unit ==
        doctest::Approx(5e6));  // 20 items of it are the rise of 100 MB; the slope of a second is a mean of two paces
}

TEST_CASE("judge: a buffer that is written to is one block and always young, and its calls are not its bytes") {
  const auto told = [](double step) {
    Run run("timer", 0.25);  // resident memory as measured
    run.rss({82,  92,  92,  92,  92,  92,  92,  92,  102, 102, 102, 72,  102,
             112, 112, 109, 113, 113, 113, 123, 123, 123, 113, 123, 133, 133})
        .baseline(55);
    run.site({user("b.py", 33, "sweep")}, 2.5, Life::kExtended);
    run.note(
        R"x({"note": "holders", "kind": "timer", "containers": [{"type": "BytesIO", "length": 60002304, "per_period": 8456984.3, "bytes_per_period": 8456984,
                 "item_type": null, "holder": "stream", "file": "b.py", "line": 33, "function": "sweep", "text": "stream.write(x.tobytes())", "step": )x" +
        std::to_string(step) + "}], \"types\": []}");
    return run.judged();
  };
  const Verdict alike = told(10000384);
  REQUIRE(alike.kind == Kind::kLeak);
  CHECK(first_line(alike) == 33);
  CHECK(alike.findings.front().unit == Unit::kCall);
  CHECK(alike.findings.front().bytes_per_unit == doctest::Approx(10000384));
  CHECK(told(64).findings.front().unit == Unit::kSecond);  // pieces of many sizes
  Run unseen;                                              // nothing tells who holds it
  unseen.grow(80, 5, 16).site({user("b.py", 33, "sweep")}, 5, Life::kExtended).probe(8, 115, 115, 115);
  CHECK(unseen.judged().kind == Kind::kLeak);
  Run replaced;  // by one as large, and what resident memory gains is free
  replaced.grow(80, 5, 16)
      .site({user("b.py", 33, "sweep")}, 5, Life::kChurn)
      .live(std::vector<double>(16, 60))
      .probe(8, 115, 115, 115);
  CHECK(replaced.judged().kind != Kind::kLeak);
}

TEST_CASE("temporaries: places that allocate much and keep little") {
  Run run;
  run.grow(100, 1, 6)
      .site({user("a.py", 3, "f")}, 5, Life::kLeak)
      .site({user("a.py", 9, "g")}, 40, Life::kOnce)
      .site({user("a.py", 12, "h")}, 70, Life::kChurn);
  for (SiteState& s : run.evidence.marks.back().sites)
    if (s.site == 2) s.bytes = mb(1);
  run.evidence.sites[2].freed = run.evidence.sites[2].total - mb(1);
  const auto churn = temporaries(run.evidence);
  REQUIRE(churn.size() == 1);
  CHECK(churn[0].place.line == 12);
}

// ---- a stranger's file: what nobody would write ----

TEST_CASE("judge: a line of source as long as a note may be does not overflow the stack of a regular expression") {
  const std::string line = std::string(30000, 'x') + ".append(" + std::string(25000, 'y') + ")";
  const nlohmann::json container = {{"type", "list"},
                                    {"holder", "h"},
                                    {"item_type", "ndarray"},
                                    {"per_period", 1},
                                    {"bytes_per_period", 10e6},
                                    {"file", "train.py"},
                                    {"line", 3},
                                    {"text", line}};
  const Verdict v =
      leaking()
          .note(nlohmann::json{{"note", "holders"}, {"kind", "epoch"}, {"containers", {container}}}.dump())
          .judged();
  REQUIRE(v.kind == Kind::kLeak);
  REQUIRE(v.findings.front().blame);
  CHECK(v.findings.front().blame->snippet.size() == 400);
}

TEST_CASE("judge: a note that is nested as deep as it is long is passed over") {
  const std::string deep = std::string(30000, '[') + std::string(30000, ']');
  CHECK_FALSE(parse_note(R"({"note": "data", "what": "fit", "arrays": [{"shape": )" + deep + "}]}"));
  CHECK(parse_note(R"({"note": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[["})"));
  CHECK_FALSE(parse_note("[1]"));
  CHECK(leaking().note(R"({"note": "end", "exception": )" + deep + "}").judged().kind == Kind::kLeak);
}

TEST_CASE("judge: numbers beyond all bounds in a note stay finite, and lines stay lines") {
  Run run = leaking();
  run.note(
      R"({"note": "holders", "containers": [{"type": "list", "holder": "h", "bytes_per_period": 1e308, "per_period": 1, "line": -1e300, "file": "a.py"}]})");
  run.note(
      R"({"note": "lines", "calls": [{"what": "trace", "file": "a.py", "line": 1e300, "count": 1e308}, {"what": "trace", "file": "b.py", "line": 1, "count": 1e308}]})");
  const Notes notes = read_notes(run.evidence);
  CHECK(notes.containers.at(0).bytes_per_period == 1e18);
  CHECK(notes.containers.at(0).place.line == 0);
  CHECK(notes.lines.at(0).place.line == 1'000'000'000);
  CHECK(std::isfinite(notes.count("trace")));
  for (const Finding& f : run.judged().findings) CHECK(f.total.value >= 0);
}

TEST_CASE(
    "notes: of thousands of containers and lines a thousand are kept, and what is known already is still brought up to "
    "date") {
  nlohmann::json containers = nlohmann::json::array(), calls = nlohmann::json::array();
  for (int i = 0; i < 3000; ++i) {
    containers.push_back({{"type", "list"}, {"holder", std::to_string(i)}, {"bytes_per_period", i}});
    calls.push_back({{"what", "trace"}, {"file", "a.py"}, {"line", i}, {"count", i}});
  }
  Evidence e;
  for (int twice = 0; twice < 2; ++twice) {
    e.notes.push_back(nlohmann::json{{"note", "holders"}, {"containers", containers}}.dump());
    e.notes.push_back(nlohmann::json{{"note", "lines"}, {"calls", calls}}.dump());
  }
  const Notes notes = read_notes(e);
  CHECK(notes.containers.size() == 1000);
  CHECK(notes.containers.front().looks == 2);
  CHECK(notes.lines.size() == 1000);
  CHECK(notes.lines.front().count == 999);
}

TEST_CASE("judge: twenty thousand rounds with sixteen thousand places are judged in seconds and without gigabytes") {
  Run run;  // 2 MB of a file; every place had a number for every round, and every pair of rounds a slope
  run.grow(600, 0.01, 20000).live_from(300, 0.01).probe(10000, 700, 700, 690);
  for (int i = 0; i < 16000; ++i) run.evidence.sites.push_back({{{"train.py", "f", i + 1, false, true}}, mb(1), 1, {}});
  for (size_t i = 0; i < run.evidence.marks.size(); ++i)
    run.evidence.marks[i].sites.push_back({int(i % 16000), mb(1), 1, {}});
  CHECK_FALSE(run.judged().sentence.empty());
}

TEST_CASE(
    "judge: of what was not looked into, resident memory that rises is unsure, and one that stays is told as all that "
    "was seen") {
  const auto seen = [](double each) {
    Evidence e;
    e.blind = "x is linked statically";
    for (int i = 0; i < 60; ++i) e.os.push_back({0.05 * i, Bytes{int64_t(20e6 + each * i)}, {}, {}, {}, 1});
    return judge(e);
  };
  const Verdict rises = seen(1e6);
  CHECK(rises.kind == Kind::kUnsure);
  CHECK(rises.sentence.find("cannot be told from outside") != std::string::npos);
  CHECK_FALSE(rises.would_settle.empty());
  const Verdict stays = seen(0);
  CHECK(stays.kind == Kind::kFlat);
  CHECK(stays.sentence.find("all that was seen of it") != std::string::npos);
  CHECK(stays.sentence.find("does not grow") == std::string::npos);
  Evidence children;  // the process that was started stays, one of its children rises
  children.blind = "2 of its processes found no room";
  for (int i = 0; i < 60; ++i) {
    children.os.push_back({0.05 * i, Bytes{20000000}, {}, {}, {}, 1});
    children.os.push_back({0.05 * i, {}, {}, Bytes{int64_t(20e6 + 1e6 * i)}, {}, 2});
  }
  CHECK(judge(children).kind == Kind::kUnsure);
  children.blind_partly = true;
  CHECK(judge(children).sentence.find("not all of its processes were looked into") != std::string::npos);
}

TEST_CASE("judge: what holds for some processes does not hide what was seen of the others") {
  Run run;
  run.grow(600, 0.01, 40).live_from(300, 0.01);
  const Verdict whole = run.judged();
  run.evidence.blind = "1 of its processes ran under a sanitizer", run.evidence.blind_partly = true;
  const Verdict partly = run.judged();
  CHECK((partly.kind == whole.kind && partly.sentence == whole.sentence));
}
