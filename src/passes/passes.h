// Passes: graph in, graph out; small, each in its own file, printable before and after.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace millpond::passes {

/// A value and what its gradients are multiplied by.
struct Seeded {
  graph::Value value;
  graph::Value seed = {};  // of the same type; null: ones
};
/// Gradients with respect to `wrt` of the sum of value * seed over all elements of all `values`, appended to the graph
/// (phase kBackward). A null Value where nothing depends on it. Throws Error(kShape) or (kDType) for a seed of another
/// type.
/// Applied to its own result it gives second derivatives.
std::vector<graph::Value> gradients(graph::Builder& b, std::span<const Seeded> values,
                                    std::span<const graph::Value> wrt);
/// Of one scalar.
std::vector<graph::Value> gradients(graph::Builder& b, graph::Value loss, std::span<const graph::Value> wrt);

struct Options {
  bool attention = true;  // attention without the score matrix
  bool fold_constants = true;
  bool common_subexpressions = true;
  bool simplify = true;
  bool fuse = true;          // element-wise chains and sums
  bool epilogue = true;      // element-wise work on the tiles of a product or convolution
  bool conv_pool = true;     // convolution, relu and max-pool without the convolution's output
  bool recompute = true;     // element-wise results that backward makes anew instead of keeping them
  bool update = true;        // the optimiser inside backward
  bool order = true;         // order of calls for the smallest peak
  bool in_variables = true;  // new values made in their variable's own bytes, where nobody reads the old one any more
  bool in_place = true;      // results over operands nobody reads again
  bool recompute_to = true;  // values made again until the step fits, where there is a target (recompute_to.h)
  bool own_outputs = false;  // a value of its own for each output: set where outputs belong to the caller
  bool record = false;       // keep the text of the graph before and after each pass
  /// Whether the backend has a fusion (an MP_FUSION of ops/list.inc, or ops::kEpilogue); a pass that would make one it
  /// has not is left out. Empty: it has all of them.
  std::function<bool(std::string_view)> offers;
  static Options none();
};

/// What making values again instead of keeping them has come to (recompute_to.h).
struct Recomputed {
  struct Call {               // that runs a second time
    std::string layer, name;  // of the operator
    Bytes bytes;              // of the values for which it runs
    double flops = 0;
  };
  Bytes target;           // for the arena
  Bytes before, after;    // the arena without and with it. Above the target: this is the least that it came to,
  bool exhausted = true;  // or as far as it came in the time that a search may take
  double step_flops = 0, added_flops = 0;
  double step_moved = 0, added_moved = 0;  // bytes that calls read and write
  std::vector<Call> calls;
  bool reached() const { return after <= target; }
};

struct Record {
  std::string pass;
  int nodes_before = 0, nodes_after = 0;
  double seconds = 0;
  std::string before = {}, after = {};                  // only with Options::record
  std::optional<Recomputed> recomputed = std::nullopt;  // of recompute_to
};

/// Evaluates one operator on constants (handed in: passes know no backend). Null: no folding.
using Evaluator = std::function<std::vector<Tensor>(const graph::Operator& op, std::span<const Tensor> inputs,
                                                    std::span<const graph::TensorType> outputs)>;

/// The passes that must come before gradients are taken, because the operators they make have gradients of their own:
/// attention.
std::vector<Record> run_before_gradients(graph::Graph& graph, const Options& options);

/// Runs all other passes that `options` names, in their order, assign_updates among the last; checks the graph's
/// invariants between them in debug builds.
std::vector<Record> run(graph::Graph& graph, const Options& options, const Evaluator& evaluate);

// The single passes, each in the file of its name.
void attention(graph::Graph& graph);  // matmul, scale, mask, softmax, matmul become one operator
void fold_constants(graph::Graph& graph, const Evaluator& evaluate);
void common_subexpressions(graph::Graph& graph);
void simplify(graph::Graph& graph);
void conv_pool(graph::Graph& graph);
void recompute(graph::Graph& graph);
void update(graph::Graph& graph);
void epilogue(graph::Graph& graph);
void fuse(graph::Graph& graph);
void order(graph::Graph& graph);
void own_outputs(graph::Graph& graph);
void assign_updates(graph::Graph& graph, bool in_variables);  // always runs

}  // namespace millpond::passes
