#include "ops/row_scale.h"

#include "base/format.h"
#include "ops/binary.h"
#include "ops/check.h"
#include "ops/reduce.h"

namespace millpond::ops {

std::vector<graph::TensorType> RowScale::infer(std::span<const graph::TensorType> inputs) const {
  const Shape &x = inputs[0].shape, &gain = inputs[1].shape;
  if (x.rank() != 2 || gain.rank() != 1 || gain[0] != x[1])
    throw Error(Code::kShape, format("row_scale: gain is {}, but x is {}", gain, x))
        .hint("give gain one value for each column of x");
  return {inputs[0]};
}

std::vector<graph::Value> RowScale::backward(graph::Builder& b, const graph::Node& node,
                                             std::span<const graph::Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  return {row_scale(b, dys[0], node.input(1)), sum(b, multiply(b, dys[0], node.input(0)), {0})};
}

graph::Value row_scale(graph::Builder& b, graph::Value x, graph::Value gain) {
  return b.add(std::make_shared<RowScale>(), {x, gain});
}

}  // namespace millpond::ops
