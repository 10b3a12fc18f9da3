// Convolution, bias, relu and max-pool become one node that never stores the convolution's output. Forward keeps the pooled
// value and who won; backward goes from the pooled gradient straight into the gradients of filter, bias and input, because
//   gate(max_pool2d_backward(winners, dp), r) = max_pool2d_backward(winners, gate(dp, p)):  the winner's value is the pooled value.
#include <algorithm>

#include "ops/conv2d.h"
#include "ops/conv2d_backward_filter.h"
#include "ops/conv2d_backward_input.h"
#include "ops/conv_pool.h"
#include "ops/conv_pool_backward.h"
#include "ops/conv_pool_backward_input.h"
#include "ops/max_pool2d.h"
#include "ops/max_pool2d_backward.h"
#include "ops/reduce.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;
using ops::Function;

namespace {

bool tiles(const ops::Window& pool) {
  return pool.stride_h == pool.height && pool.stride_w == pool.width && pool.dilation_h == 1 && pool.dilation_w == 1 &&
         pool.top + pool.bottom + pool.left + pool.right == 0 && pool.height * pool.width <= 256;
}

struct Backward {
  Node* gate = nullptr;  // gate(max_pool2d_backward, r)
  Value dpooled;
  Node* filter = nullptr;  // readers of the gate
  Node* bias = nullptr;
  Node* input = nullptr;
};

// The reader of relu's output r beside the pool is relu's gate, that of the winners the pool's backward. False:
// somebody else reads them too.
bool match_backward(const graph::Uses& uses, Value r, Node* pool, Backward& found) {
  Node* unpool = nullptr;
  for (const graph::Uses::Use& u : uses.of(r)) {
    if (u.node == pool) continue;
    if (is(u.node, Function::k_gate) && u.operand == 1)
      found.gate = u.node;
    else
      return false;
  }
  for (const graph::Uses::Use& u : uses.of(pool->output(1))) {
    if (unpool || !as<ops::MaxPool2DBackward>(u.node)) return false;
    unpool = u.node;
  }
  if (!unpool && !found.gate) return true;
  if (!unpool || !found.gate || uses.only_reader(unpool->output()) != found.gate ||
      found.gate->inputs[0] != unpool->output())
    return false;
  found.dpooled = unpool->inputs[1];
  for (const graph::Uses::Use& u : uses.of(found.gate->output())) {
    if (as<ops::Conv2DBackwardFilter>(u.node) && u.operand == 1)
      found.filter = u.node;
    else if (as<ops::Conv2DBackwardInput>(u.node) && u.operand == 0)
      found.input = u.node;
    else if (const auto* sum = as<ops::Reduce>(u.node);
             sum && sum->kind == ops::Reduce::Kind::kSum && sum->axes == std::vector<int>{0, 1, 2})
      found.bias = u.node;
    else
      return false;
  }
  return true;
}

}  // namespace

void conv_pool(graph::Graph& graph) {
  graph::Builder b(graph);
  const size_t count = graph.nodes().size();
  for (size_t i = 0; i < count; ++i) {
    Node* pool = graph.nodes()[i].get();
    const auto* pooling = as<ops::MaxPool2D>(pool);
    if (!pooling || !tiles(pooling->window)) continue;
    const Value r = pool->inputs[0];
    if (!is(r, Function::k_relu)) continue;
    const graph::Uses uses(graph);
    Node* reader = r.node;
    Value c = r.node->inputs[0], bias;
    if (is(c, Function::k_add)) {
      if (uses.only_reader(c) != reader) continue;
      reader = c.node;
      const int side = as<ops::Conv2D>(reader->inputs[0]) ? 0 : 1;
      c = reader->inputs[side], bias = reader->inputs[1 - side];
    }
    const auto* conv = as<ops::Conv2D>(c);
    if (!conv || conv->groups != 1 || !conv->epilogue.empty() || uses.only_reader(c) != reader ||
        c.dtype() != DType::kFloat32)
      continue;
    if (bias && bias.shape() != Shape{c.shape().back()}) continue;
    Backward back;
    if (!match_backward(uses, r, pool, back)) continue;
    if (!bias) bias = b.constant(Tensor(DType::kFloat32, {c.shape().back()}));

    const Value x = c.node->inputs[0], filter = c.node->inputs[1];
    std::vector<Value> forward;
    {
      const graph::Builder::Scope scope(b, *c.node);
      forward = b.add_all(std::make_shared<ops::ConvPool>(conv->window, pooling->window), {x, filter, bias});
    }
    Value dp;
    if (back.gate) {
      const graph::Builder::Scope scope(b, *back.gate);
      dp = ops::binary(b, Function::k_gate, back.dpooled, forward[0]);
    }
    if (back.input) {
      const graph::Builder::Scope scope(b, *back.input);
      graph.replace(back.input->output(),
                    b.add(std::make_shared<ops::ConvPoolBackwardInput>(conv->window, pooling->window, x.shape()),
                          {dp, filter, forward[1]}));
    }
    if (back.filter) {
      const graph::Builder::Scope scope(b, *back.filter);
      const std::vector<Value> grads = b.add_all(
          std::make_shared<ops::ConvPoolBackward>(conv->window, pooling->window, filter.shape()), {x, forward[1], dp});
      graph.replace(back.filter->output(), grads[0]);
      if (back.bias) graph.replace(back.bias->output(), grads[1]);
    } else if (back.bias) {  // the filter is frozen
      const graph::Builder::Scope scope(b, *back.bias);
      graph.replace(back.bias->output(), b.add(back.bias->op, {dp}));
    }
    graph.replace(pool->output(), forward[0]);
  }
}

}  // namespace millpond::passes
