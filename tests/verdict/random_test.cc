// 200 random runs of each class: no run without a leak may be called one.
#include <doctest/doctest.h>

#include <iostream>
#include <map>

#include "base/format.h"
#include "base/random.h"
#include "verdict/run.h"

using namespace millpond::verdict;
using namespace millpond;

namespace {

struct Made {
  std::vector<double> rss, live;
  double taken = 0;  // by each probe
  double baseline = 0;
  bool gc = false;  // what a probe takes is garbage: in use until then
};

/// Probes after periods 4, 8, 16, ...: they take what they can, and it comes back over a few periods.
Run watched(const Made& made, Random& random) {
  Run run;
  std::vector<double> rss = made.rss;
  std::vector<std::pair<int, double>> probes;
  const int regrow = 1 + int(random.below(4));
  for (int at = 4; at <= int(rss.size()); at *= 2) {
    probes.emplace_back(at, rss[size_t(at - 1)]);
    for (int i = 1; i < regrow && at - 1 + i < int(rss.size()); ++i)
      rss[size_t(at - 1 + i)] -= made.taken * (1 - double(i) / regrow);
  }
  run.rss(rss).baseline(made.baseline);
  if (!made.live.empty()) run.live(made.live);
  for (const auto& [at, before] : probes)
    run.probe(at, before, before, before - made.taken, int64_t(random.below(3000)));
  return run;
}

int length(Random& r) { return 8 + int(r.below(40)); }
double start(Random& r) { return 40 + 900 * r.uniform(); }

Made flat(Random& r) {
  Made m;
  m.baseline = start(r);
  const double noise = m.baseline * 0.01 * r.uniform();
  for (int i = 0, n = length(r); i < n; ++i)
    m.rss.push_back(m.baseline + noise * r.normal()), m.live.push_back(0.5 * m.baseline + 0.1 * r.normal());
  m.taken = 0.05 * m.baseline * r.uniform();
  return m;
}

/// Frameworks creep: less than a megabyte each epoch, most of it kept by the allocator.
Made creeping(Random& r) {
  Made m;
  m.baseline = 400 + 400 * r.uniform();
  const double by = 0.9 * r.uniform();
  for (int i = 0, n = 8 + int(r.below(16)); i < n; ++i)
    m.rss.push_back(m.baseline + by * i + 0.5 * r.normal()), m.live.push_back(0.5 * m.baseline + 0.3 * by * i);
  m.taken = 20 * r.uniform();
  return m;
}

Made wandering(Random& r) {
  Made m;
  m.baseline = start(r);
  double at = 0;
  for (int i = 0, n = length(r); i < n; ++i) {
    at = 0.7 * at + 0.08 * m.baseline * r.normal();
    m.rss.push_back(1.4 * m.baseline + at);
    m.live.push_back(0.5 * m.baseline + 0.2 * r.normal());
  }
  m.taken = 0.2 * m.baseline * r.uniform();
  return m;
}

Made jumping(Random& r) {
  Made m;
  m.baseline = start(r);
  const double jump = m.baseline * (0.2 + r.uniform());
  const int n = length(r), at = int(r.below(3));
  for (int i = 0; i < n; ++i) {
    m.rss.push_back(m.baseline + (i >= at ? jump : 0) + r.normal());
    m.live.push_back(0.5 * m.baseline + (i >= at ? jump : 0));
  }
  return m;
}

Made filling(Random& r) {
  Made m;
  m.baseline = start(r);
  const int n = length(r) + 8;
  const double size = m.baseline * (0.2 + r.uniform()), full = n * (0.1 + 0.3 * r.uniform());
  for (int i = 0; i < n; ++i) {
    const double held = size * std::min(1.0, i / full);
    m.rss.push_back(m.baseline + held + r.normal());
    m.live.push_back(0.5 * m.baseline + held);
  }
  return m;
}

/// Free memory that the allocator keeps goes up between probes; nothing more is in use.
Made keeping(Random& r) {
  Made m;
  m.baseline = start(r);
  const double by = m.baseline * (0.01 + 0.05 * r.uniform());
  int since = 0;
  for (int i = 1, n = 12 + int(r.below(30)); i <= n; ++i) {
    m.rss.push_back(1.3 * m.baseline + by * ++since + r.normal());
    m.live.push_back(m.baseline + 0.2 * r.normal());
    if (i >= 4 && (i & (i - 1)) == 0) since = 0;
  }
  m.taken = 0;  // written into the series above: the probe's own values follow
  return m;
}

Made leaking(Random& r) {
  Made m;
  m.baseline = start(r);
  const int n = 10 + int(r.below(40));
  const double by = std::max(30.0, 0.05 * m.baseline) / n * (1.5 + 6 * r.uniform());
  for (int i = 0; i < n; ++i) {
    m.rss.push_back(m.baseline + by * i + 0.3 * by * r.normal());
    m.live.push_back(0.5 * m.baseline + by * i + 0.05 * by * r.normal());
  }
  m.taken = 0.05 * m.baseline * r.uniform();
  return m;
}

}  // namespace

TEST_CASE("random runs: no false leak in 1,200, and leaks are found") {
  const std::vector<std::pair<const char*, Made (*)(Random&)>> classes = {
      {"flat", flat},       {"creeping", creeping}, {"wandering", wandering}, {"jumping", jumping},
      {"filling", filling}, {"keeping", keeping},   {"leaking", leaking}};
  std::map<std::string, std::map<std::string, int>> table;
  for (const auto& [name, make] : classes)
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Random random(seed * 31 + 7);
      const Made made = make(random);
      Run run = watched(made, random);
      if (make == keeping)
        for (Probe& p : run.evidence.probes) p.after_trim = p.after_gc = mb(1.3 * made.baseline), p.after_gc = p.rss;
      const Verdict v = run.judged();
      ++table[name][std::string(to_string(v.kind))];
      if (make != leaking && v.kind == Kind::kLeak) {
        CAPTURE(name);
        CAPTURE(seed);
        CHECK(v.sentence == "no leak");
      }
    }
  for (const auto& [name, row] : table) {
    std::cout << format("{:10}", name);
    for (const auto& [verdict, count] : row) std::cout << format(" {} {}", verdict, count);
    std::cout << "\n";
  }
  CHECK(table["leaking"]["leak"] >= 190);
  CHECK(table["flat"]["flat"] >= 190);
  CHECK(table["keeping"]["retention"] >= 150);
  CHECK(table["filling"]["cache"] >= 120);
  CHECK(table["jumping"]["cache"] == 0);
  CHECK(table["flat"]["cache"] + table["creeping"]["cache"] + table["wandering"]["cache"] == 0);
}

TEST_CASE("random runs: resident memory alone never makes a leak") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Made made = leaking(random);
    CHECK(Run().rss(made.rss).judged().kind != Kind::kLeak);
  }
}
