#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "ops/all.h"
#include "passes/recompute_to.h"
#include "passes/steps.h"
#include "runtime/buffers.h"

using namespace millpond;
using namespace millpond::test;

namespace {

runtime::Options with_target(std::optional<Bytes> target, int threads = 1) {
  runtime::Options o;
  o.threads = threads;
  o.memory_target = target;
  return o;
}

const passes::Recomputed& told(const runtime::Lowered& l) {
  for (const passes::Record& r : l.records)
    if (r.recomputed) return *r.recomputed;
  FAIL("no record of the pass");
  throw 0;
}

Bytes constants_of(const runtime::Lowered& l) {
  Bytes sum;
  for (const Tensor& t : l.constants) sum += t.bytes();
  return sum;
}

void check_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].shape() == b[i].shape());
    CHECK(std::memcmp(a[i].data(), b[i].data(), size_t(a[i].bytes().value)) == 0);
  }
}

int runs(const graph::Graph& g, std::string_view name) {
  int n = 0;
  for (const auto& node : g.nodes()) n += node->role == graph::Role::kOperator && node->op->name() == name;
  return n;
}

Step deep_mlp(int layers, int64_t rows, int64_t width) {
  return mlp_step({.rows = rows, .widths = std::vector<int64_t>(size_t(layers) + 1, width), .optimizer = "sgd"});
}

std::vector<std::pair<std::string, Step>> steps() {
  std::vector<std::pair<std::string, Step>> all;
  all.emplace_back("mlp", mlp_step({.rows = 24, .widths = {8, 16, 16, 16, 16, 16, 16, 4}}));
  all.emplace_back("mlp with dropout", mlp_step({.rows = 24, .widths = {8, 16, 16, 16, 16, 4}, .dropout = true}));
  all.emplace_back("mlp with gelu", mlp_step({.rows = 24, .widths = {8, 16, 16, 16, 4}, .gelu = true}));
  all.emplace_back("two convolutions", conv_step(true));
  all.emplace_back("attention", attention_step());
  all.emplace_back("unrolled lstm", unrolled_step({.length = 12}));
  all.emplace_back("scanned lstm", scan_step({.length = 12}));
  return all;
}

// The pass's own picture of the arena, and the plan that comes of it, for targets from all that is kept to nothing.
void check_step(const Step& step, int targets, bool run) {
  const runtime::Lowered kept = runtime::lower(step.graph.clone(), with_target({}));
  const std::vector<Tensor> expected = run ? run_steps(step, with_target({}), 3) : std::vector<Tensor>();
  Bytes last = kept.plan.size, least{-1};
  for (int k = 0; k <= targets; ++k) {
    const Bytes target{(kept.plan.size.value * (targets - k)) / targets};
    CAPTURE(target);
    const runtime::Options options = with_target(target + constants_of(kept));
    const runtime::Lowered l = runtime::lower(step.graph.clone(), options);
    const passes::Recomputed& r = told(l);
    CHECK(violations(l.graph).empty());
    CHECK(plan::violations(l.problem, l.plan).empty());
    CHECK(r.before == kept.plan.size);
    CHECK(r.after == l.plan.size);
    CHECK(l.plan.size <= last);  // a smaller target never gives a larger arena
    if (r.reached()) CHECK(l.plan.size <= target);
    if (!r.reached() && least < Bytes{0}) least = l.plan.size;
    if (!r.reached()) CHECK(l.plan.size == least);
    if (k == 0) CHECK(l.calls.size() == kept.calls.size());
    double flops = 0;
    for (const passes::Recomputed::Call& c : r.calls) flops += c.flops;
    CHECK(r.added_flops == doctest::Approx(flops));
    if (run && l.plan.size < last) check_same_bits(expected, run_steps(step, options, 3));
    last = l.plan.size;
  }
}

}  // namespace

TEST_CASE("recompute_to: steps come down to their target or say that they cannot, and compute the same bits") {
  for (const auto& [name, step] : steps()) {
    CAPTURE(name);
    check_step(step, 8, true);
  }
}

TEST_CASE("recompute_to: so do random networks") {
  const char* wanted = std::getenv("MILLPOND_RANDOM_NETWORKS");  // for a longer run
  const uint64_t count = wanted ? std::strtoull(wanted, nullptr, 10) : 60;
  uint64_t smaller = 0;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    CAPTURE(seed);
    const Step step = random_step(seed);
    check_step(step, 5, true);
    const runtime::Lowered kept = runtime::lower(step.graph.clone(), with_target({}));
    smaller += runtime::lower(step.graph.clone(), with_target(Bytes{0})).plan.size < kept.plan.size;
  }
  CHECK(smaller > count * 2 / 3);
}

TEST_CASE("recompute_to: on several threads, without reuse in place and with outputs of the caller's too") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const Step step = random_step(seed);
    check_same_bits(run_steps(step, with_target({}, 3), 2), run_steps(step, with_target(Bytes{0}, 3), 2));
    for (const bool caller : {false, true}) {
      runtime::Options options = with_target(Bytes{0});
      options.passes.in_place = false;
      options.caller_operands = caller;
      const runtime::Lowered l = runtime::lower(step.graph.clone(), options);
      CHECK(violations(l.graph).empty());
      CHECK(told(l).after == l.plan.size);
      CHECK(told(l).after <= told(l).before);
    }
  }
}

TEST_CASE("recompute_to: without a target, or without the pass, nothing is different") {
  for (const auto& [name, step] : steps()) {
    CAPTURE(name);
    const runtime::Lowered plain = runtime::lower(step.graph.clone(), {});
    runtime::Options off = with_target(Bytes{0});
    off.passes.recompute_to = false;
    const runtime::Lowered without = runtime::lower(step.graph.clone(), off);
    CHECK(to_string(plain.graph) == to_string(without.graph));
    CHECK(plain.plan.offsets == without.plan.offsets);
  }
}

TEST_CASE("recompute_to: a deep network of equal layers keeps about the root of them, for less than a third more") {
  constexpr int kLayers = 100;
  constexpr int64_t kRows = 256, kWidth = 64, kValue = kRows * kWidth * 4;
  const Step step = deep_mlp(kLayers, kRows, kWidth);
  const runtime::Lowered kept = runtime::lower(step.graph.clone(), with_target({}));
  CHECK(kept.plan.size.value > kLayers * kValue);
  for (const double share : {0.75, 0.5, 0.35, 0.25}) {
    const Bytes target = to_bytes(share * double(kept.plan.size.value));
    const runtime::Lowered l = runtime::lower(step.graph.clone(), with_target(target));
    const passes::Recomputed& r = told(l);
    const std::string text = format("target {}: arena {}, {} calls again, {:.1f} % more arithmetic", target,
                                    l.plan.size, r.calls.size(), 100 * r.added_flops / r.step_flops);
    MESSAGE(text);
    CHECK(r.reached());
    CHECK(r.added_flops < 0.34 * r.step_flops);
  }
}

TEST_CASE("recompute_to: what updates a variable runs once, and what draws random numbers draws the same") {
  // The mask is a function of a counter; were it drawn anew, or the counter counted twice, the bits would differ. The
  // running statistics and their updates are in random_step too.
  const Step step = mlp_step({.rows = 64, .widths = {16, 32, 32, 32, 32, 4}, .dropout = true});
  const runtime::Lowered kept = runtime::lower(step.graph.clone(), with_target({}));
  const runtime::Lowered l = runtime::lower(step.graph.clone(), with_target(Bytes{0}));
  CHECK(runs(l.graph, "matmul") > runs(kept.graph, "matmul"));
  for (const char* once : {"assign", "step_size", "optimizer_step", "dense_update", "dense_backward"})
    CHECK(runs(l.graph, once) == runs(kept.graph, once));
  check_same_bits(run_steps(step, with_target({}), 4), run_steps(step, with_target(Bytes{0}), 4));
}
