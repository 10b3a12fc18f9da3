// conv_pool_backward: gradients of conv_pool's filter and bias straight from the pooled gradient. Operands x, winners,
// dpooled; outputs dfilter, dbias. dpooled has been through relu's gradient already (gate(dpooled, pooled)): there is
// no operand for the pooled value, so that dpooled may have taken its place. Memory: partial sums a block as workspace;
// the gradient of the convolution's output is never stored.
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class ConvPoolBackward final : public graph::Operator {
 public:
  ConvPoolBackward(Window w, Window p, Shape f) : window(w), pool(p), filter(f) {}
  std::string_view name() const override { return "conv_pool_backward"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window, pool;
  const Shape filter;
};

}  // namespace millpond::ops
