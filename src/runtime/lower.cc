#include "runtime/lower.h"

#include "backend/evaluate.h"
#include "runtime/buffers.h"

namespace millpond::runtime {

passes::Options Options::offered_passes() const {
  passes::Options offered = passes;
  offered.offers = [&backend = chosen_backend()](std::string_view fusion) { return backend.offers(fusion); };
  return offered;
}

namespace {

std::vector<Call> make_calls(const graph::Graph& graph, const backend::Backend& backend, const Options& options) {
  std::vector<Call> calls;
  for (const auto& n : graph.nodes()) {
    if (n->role != graph::Role::kOperator || n->op->memory().view) continue;
    Call call;
    call.node = n.get();
    if (!n->op->bodies().empty()) {
      call.flow = lower_flow(*n, options);
      calls.push_back(std::move(call));
      continue;
    }
    backend::Request request;
    for (graph::Value v : n->inputs) request.inputs.push_back(v.type());
    request.outputs = n->types;
    request.threads = options.threads;
    call.kernel = backend.make(*n->op, request);
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace

graph::MemoryFacts Call::memory() const {
  graph::MemoryFacts facts = node->op->memory();
  if (flow) facts.may_overwrite = flow->may_overwrite;
  return facts;
}

Lowered lower(graph::Graph graph, const Options& options) {
  Lowered l{};
  l.backend = &options.chosen_backend();
  l.threads = options.threads;
  l.graph = std::move(graph);
  passes::Options passes = options.offered_passes();
  passes.own_outputs = options.caller_operands;
  l.records = passes::run(l.graph, passes, backend::evaluate);
  l.calls = make_calls(l.graph, *l.backend, options);
  assign_buffers(l, {.in_place = options.passes.in_place, .caller_operands = options.caller_operands});
  l.plan = plan::solve(l.problem, options.plan);
  return l;
}

}  // namespace millpond::runtime
