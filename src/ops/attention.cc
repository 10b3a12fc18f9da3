#include "ops/attention.h"

#include "ops/attention_backward.h"
#include "ops/check.h"

namespace millpond::ops {

std::string Attention::attributes() const { return format("scale={}{}", scale, causal ? " causal" : ""); }

std::vector<TensorType> Attention::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  const TensorType& q = inputs[0];
  require_floating("attention", "q", q);
  require_rank("attention", "q", q, 4);
  for (int i = 1; i < 3; ++i) {
    require_dtype("attention", i == 1 ? "k" : "v", inputs[i], q.dtype);
    require_shape("attention", i == 1 ? "k" : "v", inputs[i], q.shape);
  }
  return {q, {q.dtype, q.shape.without(-1)}};
}

std::vector<Value> Attention::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (dys[1]) refuse_gradient("attention", "a gradient through the log-sum-exp of the scores is not there");
  if (!dys[0]) return no_gradients(node);
  return attention_backward(b, node.input(0), node.input(1), node.input(2), node.output(0), node.output(1), dys[0],
                            causal, scale);
}

double Attention::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const Shape& q = inputs[0].shape;
  const double scores = double(q[0] * q[1]) * double(q[2]) * (causal ? double(q[2] + 1) / 2 : double(q[2]));
  return scores * (4.0 * double(q[3]) + 4);  // two products, and the softmax
}

std::vector<Value> attention(Builder& b, Value q, Value k, Value v, bool causal, double scale) {
  return b.add_all(std::make_shared<Attention>(causal, scale), {q, k, v});
}

}  // namespace millpond::ops
