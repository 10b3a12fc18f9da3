#include "ops/softmax_cross_entropy_backward.h"

#include "ops/binary.h"
#include "ops/check.h"
#include "ops/one_hot.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/softmax.h"
#include "ops/softmax_cross_entropy.h"

namespace millpond::ops {

namespace {
Shape with_one(const Shape& shape) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.push_back(1);
  return Shape(dims);
}
}  // namespace

std::vector<TensorType> SoftmaxCrossEntropyBackward::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 3);
  const TensorType loss = SoftmaxCrossEntropy().infer(inputs.first(2))[0];
  require_dtype(name(), "dloss", inputs[2], loss.dtype);
  require_shape(name(), "dloss", inputs[2], loss.shape);
  return {inputs[0]};
}

std::vector<Value> SoftmaxCrossEntropyBackward::backward(Builder& b, const Node& node,
                                                         std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  const Value logits = node.input(0), labels = node.input(1), dloss = node.input(2), g = dys[0];
  const Value p = softmax(b, logits);
  const Value along = sum(b, multiply(b, g, p), {-1}, true);
  const Value dlogits = multiply(b, reshape(b, dloss, with_one(dloss.shape())), multiply(b, p, subtract(b, g, along)));
  const Value ddloss =
      sum(b, multiply(b, g, subtract(b, p, one_hot(b, labels, logits.shape().back(), logits.dtype()))), {-1});
  return {dlogits, Value{}, ddloss};
}

double SoftmaxCrossEntropyBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 5 * double(inputs[0].shape.size());
}

Value softmax_cross_entropy_backward(Builder& b, Value logits, Value labels, Value dloss) {
  return b.add(std::make_shared<SoftmaxCrossEntropyBackward>(), {logits, labels, dloss});
}

}  // namespace millpond::ops
