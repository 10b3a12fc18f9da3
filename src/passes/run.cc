// Runs the passes in their order, keeping a record of each and checking the graph between them.
#include "base/assert.h"
#include "base/format.h"
#include "passes/passes.h"

namespace millpond::passes {

Options Options::none() {
  Options o;
  o.fold_constants = o.common_subexpressions = o.simplify = false;
  o.fuse = o.epilogue = o.conv_pool = o.recompute = o.update = o.order = o.in_place = false;
  return o;
}

std::vector<Record> run(graph::Graph& g, const Options& options, const Evaluator& evaluate) {
  std::vector<Record> records;
  g.sort();
  const auto pass = [&](bool wanted, const char* name, auto&& apply) {
    if (!wanted) return;
    Record r{name, int(g.nodes().size()), 0, {}, {}};
    if (options.record) r.before = to_string(g);
    apply();
    g.sort();
    r.nodes_after = int(g.nodes().size());
    if (options.record) r.after = to_string(g);
    records.push_back(std::move(r));
#ifdef MILLPOND_CHECKS
    for (const std::string& v : violations(g)) {
      fmt::print(stderr, "after {}: {}\n", name, v);
      MP_ASSERT(!"a pass broke the graph");
    }
#endif
  };
  const auto tidy = [&] {
    pass(options.simplify, "simplify", [&] { simplify(g); });
    pass(options.fold_constants && evaluate, "fold_constants", [&] { fold_constants(g, evaluate); });
    pass(options.common_subexpressions, "common_subexpressions", [&] { common_subexpressions(g); });
  };
  tidy();
  pass(options.conv_pool, "conv_pool", [&] { conv_pool(g); });
  tidy();
  pass(options.recompute, "recompute", [&] { recompute(g); });
  pass(options.update, "update", [&] { update(g); });
  pass(options.epilogue, "epilogue", [&] { epilogue(g); });
  pass(options.fuse, "fuse", [&] { fuse(g); });
  pass(options.order, "order", [&] { order(g); });
  return records;
}

}  // namespace millpond::passes
