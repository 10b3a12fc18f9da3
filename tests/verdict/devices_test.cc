#include "verdict/devices.h"

#include <doctest/doctest.h>

#include "verdict/run.h"

namespace millpond::verdict {
namespace {

/// A program whose own memory does not grow, and a pool of torch with these megabytes in use at its epochs.
Run with_pool(const std::vector<double>& in_use, const std::vector<double>& reserved, double peak,
              std::string name = "torch") {
  Run run;
  run.rss(std::vector<double>(in_use.size(), 900)).live_from(500, 0).framework(name);
  Pool pool{.space = "gpu:0", .name = std::move(name), .points = {}};
  for (size_t i = 0; i < in_use.size(); ++i)
    pool.points.push_back({.t = run.evidence.marks[i].t + 0.01,
                           .in_use = mb(in_use[i]),
                           .reserved = mb(reserved[std::min(i, reserved.size() - 1)]),
                           .peak = mb(std::max(peak, in_use[i])),
                           .inactive_split = mb(10),
                           .largest_free = mb(5),
                           .limit = mb(80000)});
  run.evidence.pools.push_back(std::move(pool));
  run.evidence.process = 1;
  return run;
}
std::vector<double> rising(double from, double by, int n) {
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(from + by * i);
  return v;
}
std::string walk(const std::string& space, double mb_each, int epochs, double graph = 0) {
  const double bytes = mb_each * 1e6 * epochs;
  nlohmann::json holder = {{"bytes", bytes},
                           {"samples", epochs},
                           {"items", epochs},
                           {"how", "reached"},
                           {"graph", graph * bytes},
                           {"births", std::vector<double>(16, bytes / 16)},
                           {"type", "list"},
                           {"chain", {"local kept of main"}},
                           {"born",
                            {{{"file", "train.py"},
                              {"line", 21},
                              {"function", "forward"},
                              {"text", "return self.head(x)"},
                              {"bytes", bytes}}}},
                           {"puts",
                            {{{"file", "train.py"},
                              {"line", 31},
                              {"function", "main"},
                              {"text", "kept.append(y)"},
                              {"how", "append"},
                              {"by", "counted"},
                              {"gained", 9}}}}};
  return nlohmann::json{{"note", "walk"},   {"kind", "epoch"}, {"period", epochs},   {"alive", bytes},
                        {"reached", bytes}, {"space", space},  {"holders", {holder}}}
      .dump();
}

}  // namespace

TEST_CASE(
    "devices: what a pool has in use rises inside of what it reserved long ago, and is a leak with line, holder, rate "
    "and forecast") {
  const Verdict v = with_pool(rising(200, 12, 40), {4000}, 0).note(walk("gpu:0", 12, 40)).judged();
  CHECK(v.kind == Kind::kLeak);
  REQUIRE(!v.findings.empty());
  const Finding& f = v.findings.front();
  CHECK(f.space == "gpu:0");
  CHECK(f.account == "torch");
  CHECK(f.process == 1);
  CHECK(f.blame->line == 31);
  CHECK(f.born_at->line == 21);
  CHECK(f.holder.find("kept") != std::string::npos);
  CHECK(f.bytes_per_unit == doctest::Approx(12e6).epsilon(0.02));
  REQUIRE(f.forecast);
  CHECK(f.forecast->limit == "gpu:0");
  CHECK(f.forecast->units_left == doctest::Approx((80000.0 - 200 - 12 * 39) / 12).epsilon(0.05));
  CHECK(v.sentence.starts_with("Memory of gpu:0 grows by 11.4 MiB every epoch"));
}

TEST_CASE("devices: blocks that only a graph of gradients keeps are told as such") {
  const Verdict v = with_pool(rising(200, 12, 40), {4000}, 0).note(walk("gpu:0", 12, 40, 0.9)).judged();
  CHECK(first_cause(v) == "C36");
  CHECK(first_line(v) == 31);
}

TEST_CASE("devices: a walk over the host's blocks says nothing of a device, nor the other way round") {
  const Verdict v = with_pool(rising(200, 12, 40), {4000}, 0).note(walk("host", 12, 40)).judged();
  CHECK(v.kind == Kind::kLeak);
  CHECK(v.findings.front().holder.empty());
  Run host = with_pool(std::vector<double>(40, 300.0), {400}, 0);
  CHECK(host.note(walk("gpu:0", 12, 40)).judged().kind != Kind::kLeak);
}

TEST_CASE("devices: a pool that took what its rounds need is a reserve") {
  const Verdict v = with_pool(std::vector<double>(30, 120.0), {2100}, 1900).judged();
  CHECK(v.kind == Kind::kReserve);
  CHECK(v.findings.front().space == "gpu:0");
  CHECK(v.findings.front().total == mb(2100));
}

TEST_CASE("devices: reserved far above all that was ever in use at once is fragmentation, though it still rises") {
  const Verdict v = with_pool(std::vector<double>(30, 82.0), rising(900, 110, 30), 400).judged();
  CHECK(v.kind == Kind::kFragmentation);
  CHECK(first_cause(v) == "C29");
  CHECK(v.findings.front().space == "gpu:0");
  CHECK(v.sentence.find("gpu:0") != std::string::npos);
}

TEST_CASE("devices: allocations that fail while free memory lies in pieces are fragmentation") {
  Run run = with_pool(std::vector<double>(30, 3000.0), {6000}, 5000);
  for (Pool::Point& p : run.evidence.pools.front().points) p.inactive_split = mb(2500);
  CHECK(run.judged().kind == Kind::kReserve);
  run.evidence.pools.front().points.back().retries = 7;
  CHECK(run.judged().kind == Kind::kFragmentation);
}

TEST_CASE("devices: what fills and then stays is a cache") {
  std::vector<double> in_use = rising(100, 60, 12);
  in_use.resize(40, in_use.back());
  const Verdict v = with_pool(in_use, {1000}, 0).judged();
  CHECK(v.kind == Kind::kCache);
  CHECK(v.findings.front().space == "gpu:0");
}

TEST_CASE("devices: JAX takes most of the device in advance, and a leak inside of that is found all the same") {
  CHECK(first_cause(with_pool(std::vector<double>(30, 500.0), {75000}, 800, "jax").judged()) == "C27");
  const Verdict v = with_pool(rising(500, 16, 40), {75000}, 0, "jax").note(walk("gpu:0", 16, 40)).judged();
  CHECK(v.kind == Kind::kLeak);
  CHECK(first_line(v) == 31);
}

TEST_CASE("devices: TensorFlow tells what is in use and its peak alone") {
  Run run = with_pool(rising(500, 16, 40), {0}, 0, "tensorflow");
  for (Pool::Point& p : run.evidence.pools.front().points)
    p.reserved = p.inactive_split = p.largest_free = p.limit = std::nullopt;
  const Verdict v = run.judged();
  CHECK(v.kind == Kind::kLeak);
  CHECK(v.findings.front().bytes_per_unit == doctest::Approx(16e6).epsilon(0.02));
  CHECK(!v.findings.front().forecast);
}

TEST_CASE("devices: a leak of the host and one of the device are both told, the larger first") {
  Run run;
  run.grow(900, 3, 40).live_from(500, 3).site({Frame{"main.py", "main", 7, false, true}}, 3, Life::kLeak);
  run.evidence.pools = with_pool(rising(200, 12, 40), {4000}, 3500).evidence.pools;
  const Verdict v = run.note(walk("gpu:0", 12, 40)).judged();
  CHECK(v.kind == Kind::kLeak);
  REQUIRE(v.findings.size() >= 2);
  CHECK(v.findings[0].space == "gpu:0");
  CHECK(v.findings[1].space == "host");
  CHECK(v.findings[0].sets_verdict);
  CHECK(v.findings[1].sets_verdict);
}

TEST_CASE("devices: the driver's totals are no advice where a framework tells what its pool has in use") {
  Run run = with_pool(std::vector<double>(40, 300.0), {400}, 350);
  Gpu gpu{0, "NVIDIA H200", mb(140000), mb(9000), mb(9000), {}};
  for (int i = 0; i < 60; ++i) gpu.points.push_back({20.0 + 7 * i, mb(1000 + 100 * i), mb(1000 + 100 * i)});
  run.evidence.gpus.push_back(gpu);
  const auto told = [](const Verdict& v) {
    return std::ranges::any_of(v.advice, [](const Advice& a) { return a.what == "gpu_growth"; });
  };
  CHECK(!told(run.judged()));
  run.evidence.pools.clear();
  CHECK(told(run.judged()));
}

TEST_CASE("devices: too few rounds on a device that rises leave the question open") {
  const Verdict v = with_pool(rising(200, 120, 4), {4000}, 3500).judged();
  CHECK(v.kind == Kind::kUnsure);
}

}  // namespace millpond::verdict
