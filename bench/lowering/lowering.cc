// How the time of lowering grows with the size of a graph: a recurrent layer written out step by step, with gradients
// and updates, of about 1,000, 10,000 and 100,000 nodes. "exponent" is the slope between two rows: 1 is linear, 2 is
// quadratic. The plan is checked by the validator for the smaller ones before any time is believed.
// With --to SHARE each is lowered once more, for a target of that share of its arena (passes/recompute_to.h).
//   lowering_bench [largest number of nodes] [--passes] [--to 0.5]
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "passes/steps.h"

using namespace millpond;

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

int main(int argc, char** argv) {
  int64_t largest = 100'000;
  bool by_pass = false;
  double share = 0;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--passes") == 0)
      by_pass = true;
    else if (std::strcmp(argv[i], "--to") == 0 && i + 1 < argc)
      share = std::atof(argv[++i]);
    else
      largest = std::atoll(argv[i]);
  std::printf("%9s %9s %9s %9s %9s %9s %9s %10s  %s\n", "nodes", "trace s", "passes s", "calls", "buffers", "plan s",
              "lower s", "exponent", "plan");
  double nodes_before = 0, seconds_before = 0;
  for (const int64_t wanted : {int64_t{1000}, int64_t{10'000}, int64_t{100'000}}) {
    if (wanted > largest) break;
    constexpr int64_t kNodesAStep = 64;  // of this cell, with its gradient
    const auto start = Clock::now();
    test::Step step = test::unrolled_step({.length = wanted / kNodesAStep, .rows = 4, .inputs = 8, .units = 8});
    const double traced = since(start);
    const size_t nodes = step.graph.nodes().size();
    graph::Graph again = share > 0 ? step.graph.clone() : graph::Graph();
    const auto lowering = Clock::now();
    const runtime::Lowered l = runtime::lower(std::move(step.graph), {});
    const double lowered = since(lowering);
    if (wanted <= 10'000)
      for (const std::string& v : plan::violations(l.problem, l.plan)) {
        std::printf("%s\n", v.c_str());
        return 1;
      }
    double passes = 0;
    std::map<std::string, double> each;
    for (const passes::Record& r : l.records) passes += r.seconds, each[r.pass] += r.seconds;
    std::printf("%9zu %9.3f %9.3f %9zu %9zu %9.3f %9.3f ", nodes, traced, passes, l.calls.size(),
                l.problem.buffers.size(), l.plan.seconds, lowered);
    if (seconds_before > 0)
      std::printf("%10.2f", std::log(lowered / seconds_before) / std::log(double(nodes) / nodes_before));
    else
      std::printf("%10s", "");
    std::printf("  %s\n", to_string(l.plan).c_str());
    if (by_pass)
      for (const auto& [name, seconds] : each) std::printf("    %-24s %9.3f s\n", name.c_str(), seconds);
    if (share > 0) {
      runtime::Options options;
      options.memory_target = to_bytes(share * double(l.plan.size.value));
      const auto aiming = Clock::now();
      const runtime::Lowered less = runtime::lower(std::move(again), options);
      const passes::Recomputed& r = *less.records.back().recomputed;
      std::printf("    to %.0f %%: %.3f s, %s, %zu calls again, %.1f %% more arithmetic\n", 100 * share, since(aiming),
                  to_string(less.plan).c_str(), r.calls.size(), 100 * r.added_flops / r.step_flops);
    }
    std::fflush(stdout);
    nodes_before = double(nodes), seconds_before = lowered;
  }
  return 0;
}
