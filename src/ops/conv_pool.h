// conv_pool: convolution, bias, relu and max-pool in one sweep: the convolution's own output is never stored. Operands
// x, filter, bias; outputs: pooled values [n, h, w, out], and the winners uint8 [n, h, w, winner_bytes(out)]: for each
// group of 16 channels of a cell, one 16-bit mask for each bit of the winner's place in its window (row * pool width +
// column, lowest bit first); 2 bits a value for a pool of 2 x 2. The first largest wins. The pool does not overlap
// (stride equals size) and has no padding; rows and columns left over are never computed. Memory: pooled values and
// winners; tiles as workspace.
#pragma once
#include "ops/conv2d.h"

namespace millpond::ops {

using graph::Builder;
using graph::Node;
using graph::TensorType;
using graph::Value;

class ConvPool final : public graph::Operator {
 public:
  ConvPool(Window w, Window p) : window(w), pool(p) {}
  std::string_view name() const override { return "conv_pool"; }
  std::string attributes() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;

  const Window window;  // of the convolution
  const Window pool;
  int winner_bits() const;                       // bits that hold a place in the pool: 2 for 2 x 2
  int64_t winner_bytes(int64_t channels) const;  // (channels + 15) / 16 * 2 * winner_bits()
};

}  // namespace millpond::ops
