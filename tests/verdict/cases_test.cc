// The shared cases' own numbers: what resident memory and one probe say must already have the right class where they
// can.
#include <doctest/doctest.h>

#include <cstring>

#include "verdict/run.h"

using namespace millpond::verdict;
using namespace millpond;

namespace {

struct Probed {
  int mark = 0;
  double rss = 0, after_gc = 0, after_trim = 0;
  int64_t collected = 0;
};

struct Known {
  const char *name, *verdict, *also, *cause;
  double mb_per_unit;
  int units_per_mark, line;
  std::vector<double> rss;
  Probed probe;
};

const std::vector<Known> kCases = {
#include "cases.inc"
};

const Known& known(const char* name) {
  for (const Known& k : kCases)
    if (!std::strcmp(k.name, name)) return k;
  FAIL(name);
  return kCases.front();
}

bool is_leak(const Known& k) { return !std::strcmp(k.verdict, "leak"); }

/// The series as it was, and the probe at its mark.
Run as_measured(const Known& k) {
  Run run;
  run.rss(k.rss);
  if (k.probe.mark)
    run.probe(std::min(k.probe.mark + 1, int(k.rss.size())), k.probe.rss, k.probe.after_gc, k.probe.after_trim,
              k.probe.collected);
  return run;
}

/// As the doctor would have seen it: probes after periods 4, 8, 16, 32 take what the known probe took, and it comes
/// back over `regrow` periods.
Run as_watched(const Known& k, int regrow) {
  const double taken = k.probe.mark ? k.probe.rss - k.probe.after_trim : 5;
  std::vector<double> rss = k.rss;
  std::vector<std::pair<int, double>> probes;
  for (int at = 4; at <= int(rss.size()); at *= 2) {
    probes.emplace_back(at, rss[size_t(at - 1)]);
    for (int i = 1; i < regrow && at - 1 + i < int(rss.size()); ++i)
      rss[size_t(at - 1 + i)] -= taken * (1 - double(i) / regrow);
  }
  Run run;
  run.rss(rss);
  for (const auto& [at, before] : probes) run.probe(at, before, before, before - taken, k.probe.collected);
  return run;
}

}  // namespace

TEST_CASE("shared cases: resident memory and one probe tell leaks from all others") {
  for (const Known& k : kCases) {
    CAPTURE(k.name);
    const Verdict v = as_measured(k).judged();
    CAPTURE(v.sentence);
    CHECK((v.kind == Kind::kLeak) == is_leak(k));
    if (!is_leak(k)) CHECK(v.kind != Kind::kUnsure);
    if (is_leak(k) && v.kind == Kind::kLeak)
      CHECK(v.findings.front().bytes_per_unit / 1e6 == doctest::Approx(k.mb_per_unit * k.units_per_mark).epsilon(0.2));
  }
}

TEST_CASE(
    "shared cases: under the doctor's own probes, with allocators' use known, leaks stay leaks and nothing else "
    "becomes one") {
  for (const Known& k : kCases)
    for (int regrow : {1, 2, 4}) {
      CAPTURE(k.name);
      CAPTURE(regrow);
      Run run = as_watched(k, regrow);
      run.live_from(0.5 * k.rss.front(), is_leak(k) ? k.mb_per_unit * k.units_per_mark : 0.01);
      const Verdict v = run.judged();
      CAPTURE(v.sentence);
      CHECK((v.kind == Kind::kLeak) == is_leak(k));
      if (!is_leak(k)) CHECK(v.kind != Kind::kUnsure);
      if (is_leak(k) && v.kind == Kind::kLeak)
        CHECK(v.findings.front().bytes_per_unit / 1e6 ==
              doctest::Approx(k.mb_per_unit * k.units_per_mark).epsilon(0.2));
    }
}

TEST_CASE("shared cases: flat ones are called flat, or reserve where the start was large") {
  for (const Known& k : kCases) {
    if (std::strcmp(k.verdict, "flat")) continue;
    CAPTURE(k.name);
    for (int regrow : {1, 4}) {
      const Verdict v = as_watched(k, regrow).live_from(0.5 * k.rss.front(), 0).judged();
      CAPTURE(v.sentence);
      CHECK((v.kind == Kind::kFlat || v.kind == Kind::kReserve));
    }
  }
}

TEST_CASE("shared cases: shard_stats is retention, with the place that allocates and frees") {
  const Verdict v = as_measured(known("shard_stats"))
                        .baseline(40)
                        .site({native("libc", ""), user("shard_stats.py", 16, "load_shard")}, 230, Life::kChurn)
                        .judged();
  CHECK(v.kind == Kind::kRetention);
  CHECK(first_cause(v) == "C25");
  CHECK(first_line(v) == 16);
}

TEST_CASE("shared cases: decoded_cache and shuffled_images are named by their stages") {
  const Verdict cache =
      as_measured(known("decoded_cache")).framework("tensorflow").stage("cache", 32, ".cache()").judged();
  CHECK(cache.kind == Kind::kCache);
  CHECK(first_cause(cache) == "C19");
  CHECK(first_line(cache) == 32);
  const Verdict shuffle = as_measured(known("shuffled_images")).stage("shuffle", 31, ".shuffle(BUFFER)", 5000).judged();
  CHECK((shuffle.kind == Kind::kCache || shuffle.kind == Kind::kRetention));
  CHECK(first_line(shuffle) == 31);
}

TEST_CASE("shared cases: tabular_fit is a copy made by fit, churn_fit and torch_slots are the optimizer's state") {
  const Verdict copy =
      as_measured(known("tabular_fit"))
          .framework("tensorflow")
          .line("fit", "tabular_fit.py", 16, "<module>",
                "model.fit(data, labels, epochs=8, batch_size=2048, verbose=2)", 1)
          .note(
              R"({"note": "data", "what": "fit", "file": "tabular_fit.py", "line": 16, "arrays": [{"shape": [600000, 100], "dtype": "float64", "bytes": 480000000, "type": "ndarray"}, {"shape": [600000], "dtype": "int64", "bytes": 4800000, "type": "ndarray"}]})")
          .judged();
  CHECK(copy.kind == Kind::kReserve);
  CHECK(first_cause(copy) == "C12");
  CHECK(first_line(copy) == 16);
  const Verdict slots =
      as_measured(known("churn_fit"))
          .framework("tensorflow")
          .line("fit", "churn_fit.py", 31, "main", "history = model.fit(", 1)
          .note(
              R"({"note": "data", "what": "fit", "file": "churn_fit.py", "line": 31, "arrays": [{"shape": [4000, 784], "dtype": "float64", "bytes": 25088000, "type": "ndarray"}]})")
          .judged();
  CHECK(slots.kind == Kind::kReserve);
  CHECK(first_cause(slots) == "C35");
  const Verdict torch =
      as_measured(known("torch_slots"))
          .framework("torch")
          .line("optimizer_step", "torch_slots.py", 35, "main", "optimizer.step()", 48)
          .site({library("torch/optim/adamw.py"), user("torch_slots.py", 35, "main")}, 86, Life::kOnce, 8000)
          .judged();
  CHECK(torch.kind == Kind::kReserve);
  CHECK(first_cause(torch) == "C35");
  CHECK(first_line(torch) == 35);
}

TEST_CASE("shared cases: user_sessions is fragmentation: arenas far larger than what lives in them") {
  Run run = as_measured(known("user_sessions"));
  run.live_from(210, 0).arenas(190).counter("python.blocks", 160000, 0);
  run.site({user("user_sessions.py", 27, "load_sample")}, 200, Life::kChurn);
  for (Mark& m : run.evidence.marks) m.sites.back() = {0, mb(4), 40000, {mb(4)}};
  const Verdict v = run.judged();
  CHECK(v.kind == Kind::kFragmentation);
  CHECK(first_line(v) == 27);
}
