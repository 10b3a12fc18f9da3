#include "ops/softmax_cross_entropy.h"

#include "ops/check.h"
#include "ops/softmax_cross_entropy_backward.h"

namespace millpond::ops {

std::vector<TensorType> SoftmaxCrossEntropy::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2);
  require_floating("softmax_cross_entropy", "logits", inputs[0]);
  require_integer("softmax_cross_entropy", "labels", inputs[1]);
  const Shape& logits = inputs[0].shape;
  if (logits.rank() == 0 || logits.back() == 0)
    throw Error(Code::kShape, format("softmax_cross_entropy: logits {} have no classes", logits))
        .hint("give logits a last axis of classes");
  if (inputs[1].shape != logits.without(-1))
    throw Error(Code::kShape,
                format("softmax_cross_entropy: labels {} do not go with logits {}", inputs[1].shape, logits))
        .hint(format("give labels the shape {}", logits.without(-1)));
  return {{inputs[0].dtype, inputs[1].shape}};
}

std::vector<Value> SoftmaxCrossEntropy::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  return {softmax_cross_entropy_backward(b, node.input(0), node.input(1), dys[0]), Value{}};
}

double SoftmaxCrossEntropy::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 3 * double(inputs[0].shape.size());
}

Value softmax_cross_entropy(Builder& b, Value logits, Value labels) {
  return b.add(std::make_shared<SoftmaxCrossEntropy>(), {logits, labels});
}

}  // namespace millpond::ops
