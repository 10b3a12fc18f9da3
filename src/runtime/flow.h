// Control flow in a lowered graph: each body is lowered by itself, for one step, and all that a step wants beside the
// call's operands lies in the scratch of the call, which is a buffer of the parent's plan:
//
//   scratch   | two places for each carry that needs them | bounces | the answer of a condition | arena of the bodies |
#pragma once
#include <memory>
#include <vector>

#include "backend/executor.h"
#include "graph/operator.h"

namespace millpond::runtime {

struct Lowered;
struct Options;

struct LoweredFlow {
  LoweredFlow();
  ~LoweredFlow();

  struct Carry {
    Bytes size;
    bool in_place = false;
    Bytes places[2] = {Bytes{-1}, Bytes{-1}};  // offsets in the scratch; -1: none is needed
  };
  struct Elements {
    Bytes stride;
    Bytes bounce{-1};
  };
  backend::Flow::Kind kind = backend::Flow::Kind::kScan;
  int64_t length = 0;
  bool reverse = false;
  std::vector<Carry> carries;
  std::vector<Elements> sequences, stacks;
  int shared = 0;
  Bytes answer{-1}, arena{0}, scratch{0};
  std::vector<std::unique_ptr<Lowered>> bodies;
  std::vector<graph::Overlap> may_overwrite;  // what the call's outputs may lie over
};

/// Throws Error when the backend refuses an operator of a body.
std::unique_ptr<LoweredFlow> lower_flow(const graph::Node& node, const Options& options);

}  // namespace millpond::runtime
