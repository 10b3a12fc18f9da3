#include "runtime/lower.h"

#include <chrono>
#include <unordered_map>

#include "backend/evaluate.h"
#include "passes/recompute_to.h"
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

// Makes the calls anew where the pass has changed what runs.
void bring_down(Lowered& l, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  passes::Record record{.pass = "recompute_to", .nodes_before = int(l.graph.nodes().size())};
  if (options.passes.record) record.before = to_string(l.graph);
  Bytes constants;
  for (const auto& n : l.graph.nodes())
    if (n->role == graph::Role::kConstant) constants += n->types[0].bytes();
  std::unordered_map<const graph::Node*, const Call*> call_of;
  for (const Call& c : l.calls) call_of[c.node] = &c;
  passes::RecomputeOptions how{.target = *options.memory_target - constants, .schedule = {}, .plan = options.plan};
  how.schedule.in_place = options.passes.in_place;
  how.schedule.caller_operands = options.caller_operands;
  how.schedule.facts = [&](const graph::Node& n) {
    const Call& c = *call_of.at(&n);
    return passes::CallFacts{c.workspace(), c.memory().may_overwrite};
  };
  record.recomputed = passes::recompute_to(l.graph, how);
  if (record.recomputed->after < record.recomputed->before) l.calls = make_calls(l.graph, *l.backend, options);
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  record.nodes_after = int(l.graph.nodes().size());
  if (options.passes.record) record.after = to_string(l.graph);
  l.records.push_back(std::move(record));
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
  if (options.memory_target && options.passes.recompute_to) bring_down(l, options);
  assign_buffers(l, {.in_place = options.passes.in_place, .caller_operands = options.caller_operands});
  l.plan = plan::solve(l.problem, options.plan);
  return l;
}

}  // namespace millpond::runtime
