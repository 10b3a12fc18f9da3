// flow: what control flow (scan, while_loop, cond) has in common. Such an operator runs graphs, its bodies, instead of
// a kernel.
//
//   who runs a body       the backend's executor: a call of a script may carry scripts (backend/executor.h,
//   Script::Flow) where its memory is   a body is lowered by itself (its own passes, calls and plan), for one step. Its
//   arena is the
//                         scratch of the call in the parent's plan, so that the parent's arena holds all of it, and a
//                         loop of 1,000 steps takes the arena of one
//   what it reads         its inputs alone: operands of the operator, whole (shared), one element a step (sequences),
//   or
//                         what the step before has made (carries). No variables; constants of its own
//   what is saved         values that backward reads become outputs of the forward loop, stacked over the steps:
//   ordinary
//                         buffers of the parent's plan (passes/flow_gradients.cc)
//   how passes see it     to those of the parent it is one opaque operator. Each body gets all passes when it is
//   lowered
//
// A body is a graph whose inputs, in the order of making, and outputs are what the operator's header says. It is never
// changed once an operator has it.
#pragma once
#include <functional>
#include <memory>

#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::TensorType;
using graph::Value;

/// A body and a number that no other body of this process has: two operators with one body compute the same.
struct Body {
  explicit Body(Graph g);
  const Graph graph;  // sorted
  const int64_t number;
  std::vector<TensorType> inputs() const;
  std::vector<TensorType> outputs() const;
};
using BodyRef = std::shared_ptr<const Body>;

/// Throws Error(kShape) unless a body's inputs are `wanted`. `who` begins the message: "scan: the body".
void expect_inputs(const Body& body, std::span<const TensorType> wanted, const std::string& who);

/// Of all operators of a body, once.
double flops_of(const Graph& graph);

/// The function that writes a body: gets a builder and the body's inputs, returns its outputs.
using Write = std::function<std::vector<Value>(Builder& b, std::span<const Value> inputs)>;
BodyRef write_body(const std::string& layer, std::span<const TensorType> inputs, const Write& write);

}  // namespace millpond::ops
