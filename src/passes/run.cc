// Runs the passes in their order, keeping a record of each and checking the graph between them.
#include <algorithm>
#include <chrono>

#include "base/assert.h"
#include "base/format.h"
#include "ops/expression.h"
#include "passes/passes.h"

namespace millpond::passes {
namespace {

class Runner {
 public:
  /// `whole`: the graph has its outputs, so that it can be sorted, which drops what nothing leads to.
  Runner(graph::Graph& graph, const Options& options, bool whole) : graph_(graph), options_(options), whole_(whole) {
    sort();
  }

  /// `makes`: the fusions without which the pass has nothing to do.
  template <class Apply>
  void pass(bool wanted, const char* name, std::initializer_list<std::string_view> makes, Apply apply) {
    if (!wanted || (options_.offers && !std::ranges::all_of(makes, options_.offers))) return;
    using Clock = std::chrono::steady_clock;
    Record r{name, int(graph_.nodes().size()), 0, 0, {}, {}};
    if (options_.record) r.before = to_string(graph_);
    const auto start = Clock::now();
    apply();
    sort();
    r.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    r.nodes_after = int(graph_.nodes().size());
    if (options_.record) r.after = to_string(graph_);
    records.push_back(std::move(r));
#ifdef MILLPOND_CHECKS
    for (const std::string& v : violations(graph_)) {
      fmt::print(stderr, "after {}: {}\n", name, v);
      MP_ASSERT(!"a pass broke the graph");
    }
#endif
  }

  std::vector<Record> records;

 private:
  void sort() {
    if (whole_) graph_.sort();
  }
  graph::Graph& graph_;
  const Options& options_;
  bool whole_;
};

}  // namespace

Options Options::none() {
  Options o;
  o.attention = o.fold_constants = o.common_subexpressions = o.simplify = false;
  o.fuse = o.epilogue = o.conv_pool = o.recompute = o.update = o.order = o.in_variables = o.in_place = false;
  o.recompute_to = false;
  return o;
}

std::vector<Record> run_before_gradients(graph::Graph& g, const Options& options) {
  Runner r(g, options, false);
  r.pass(options.attention, "attention", {"attention", "attention_backward"}, [&] { attention(g); });
  return std::move(r.records);
}

std::vector<Record> run(graph::Graph& g, const Options& options, const Evaluator& evaluate) {
  Runner r(g, options, true);
  const auto tidy = [&] {
    r.pass(options.simplify, "simplify", {}, [&] { simplify(g); });
    r.pass(options.fold_constants && evaluate, "fold_constants", {}, [&] { fold_constants(g, evaluate); });
    r.pass(options.common_subexpressions, "common_subexpressions", {}, [&] { common_subexpressions(g); });
  };
  tidy();
  r.pass(options.conv_pool, "conv_pool", {"conv_pool", "conv_pool_backward", "conv_pool_backward_input"},
         [&] { conv_pool(g); });
  tidy();
  r.pass(options.recompute, "recompute", {}, [&] { recompute(g); });
  r.pass(options.update, "update", {"dense_update", "dense_backward"}, [&] { update(g); });
  r.pass(options.epilogue, "epilogue", {ops::kEpilogue}, [&] { epilogue(g); });
  r.pass(options.fuse, "fuse", {"fused"}, [&] { fuse(g); });
  r.pass(options.order, "order", {}, [&] { order(g); });
  r.pass(true, "assign_updates", {}, [&] { assign_updates(g, options.in_variables); });
  r.pass(options.own_outputs, "own_outputs", {}, [&] { own_outputs(g); });
  return std::move(r.records);
}

}  // namespace millpond::passes
