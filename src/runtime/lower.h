// lower: a graph becomes calls and a plan. It is a pure function of the graph and the options: no thread is started, no
// machine code is generated and no memory of a tensor is taken, so that a search for what fits into a budget can try
// many options. Kernels only describe themselves here; Program (runtime/program.h) gives the result memory and runs it.
//
//   graph ─▶ passes, each recorded ─▶ graph ─▶ calls in its order ─▶ buffers with sizes and lifetimes ─▶ plan: offsets in one arena
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "runtime/flow.h"
#include "runtime/variable.h"

namespace millpond::runtime {

struct Options {
  const backend::Backend* backend = nullptr;  // null: backend::default_backend()
  int threads = 1;
  passes::Options passes;
  plan::Options plan;
  /// What the arena and the constants of the program should come down to together, by making values again instead of
  /// keeping them (passes/recompute_to.h). Lowered::records say what came of it: it may be out of reach.
  std::optional<Bytes> memory_target = std::nullopt;
  /// Inputs and outputs belong to the caller, who says for each run where they are (Program::hand_over). They take no
  /// room in the arena and nothing is copied. An input is never written.
  bool caller_operands = false;

  const backend::Backend& chosen_backend() const { return backend ? *backend : backend::default_backend(); }
  /// `passes`, without those that would make what the backend does not offer.
  passes::Options offered_passes() const;
};

/// Where an operand lies: in the arena (a buffer of the plan), in a variable, in a constant of the program, or where
/// the caller has it.
struct Place {
  enum class Kind : uint8_t { kBuffer, kVariable, kConstant, kCaller } kind = Kind::kBuffer;
  int index = 0;  // of the buffer, the variable, the constant or the caller's operand
};

struct Call {
  const graph::Node* node = nullptr;
  std::unique_ptr<backend::Kernel> kernel;  // null: control flow
  std::unique_ptr<LoweredFlow> flow;
  std::vector<Place> in, out;
  int scratch = -1;  // buffer of the plan, or -1

  Bytes workspace() const { return flow ? flow->scratch : kernel->workspace(); }
  /// The operator's facts, and those that only show when its bodies have been lowered.
  graph::MemoryFacts memory() const;
};

struct Lowered {
  const backend::Backend* backend;
  int threads = 1;
  graph::Graph graph;                   // after the passes
  std::vector<passes::Record> records;  // of each pass, in the order in which they ran
  std::vector<Call> calls;
  plan::Problem problem;  // buffers named by account: "activations/conv1", ...
  plan::Plan plan;
  std::vector<Variable*> variables;  // borrowed; they need no place yet
  std::vector<Tensor> constants;
  std::map<std::string, Place, std::less<>> inputs, outputs;
  std::vector<std::string> callers;  // the caller's operands: inputs in the order of making, then outputs in theirs
};

/// Every variable node of `graph` must carry the address of a runtime::Variable as its identity.
/// Throws Error when an operator is refused by the backend.
Lowered lower(graph::Graph graph, const Options& options);

}  // namespace millpond::runtime
