// conv_pool_backward_input: gradient of conv_pool's input straight from the pooled gradient. Operands dpooled, filter,
// winners; output dx. dpooled has been through relu's gradient already, as for conv_pool_backward. Memory: a few rows
// of the gradient of the convolution's output a thread as workspace; the whole of it is never stored.
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class ConvPoolBackwardInput final : public graph::Operator {
 public:
  ConvPoolBackwardInput(Window w, Window p, Shape in) : window(w), pool(p), input(in) {}
  std::string_view name() const override { return "conv_pool_backward_input"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window, pool;
  const Shape input;  // of dx
};

}  // namespace millpond::ops
