#include "ops/attention_backward.h"

#include "ops/attention.h"
#include "ops/check.h"

namespace millpond::ops {

std::string AttentionBackward::attributes() const { return format("scale={}{}", scale, causal ? " causal" : ""); }

std::vector<TensorType> AttentionBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 6);
  const std::vector<TensorType> forward = Attention(causal, scale).infer(inputs.first(3));
  for (int i = 3; i < 6; ++i) {
    static constexpr std::string_view kWhat[] = {"out", "lse", "dout"};
    require_dtype(name(), kWhat[i - 3], inputs[i], inputs[0].dtype);
    require_shape(name(), kWhat[i - 3], inputs[i], forward[i == 4].shape);
  }
  return {inputs[0], inputs[0], inputs[0]};
}

std::vector<Value> AttentionBackward::backward(Builder&, const Node& node, std::span<const Value> dys) const {
  if (!dys[0] && !dys[1] && !dys[2]) return no_gradients(node);
  refuse_gradient(name(), "second derivatives of attention are not there yet");
}

double AttentionBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const Shape& q = inputs[0].shape;
  const double scores = double(q[0] * q[1]) * double(q[2]) * (causal ? double(q[2] + 1) / 2 : double(q[2]));
  return scores * (10.0 * double(q[3]) + 6);  // five products
}

std::vector<Value> attention_backward(Builder& b, Value q, Value k, Value v, Value out, Value lse, Value dout,
                                      bool causal, double scale) {
  return b.add_all(std::make_shared<AttentionBackward>(causal, scale), {q, k, v, out, lse, dout});
}

}  // namespace millpond::ops
