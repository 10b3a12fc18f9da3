#include "ops/dropout.h"

#include <algorithm>

#include "ops/check.h"

namespace millpond::ops {

std::string Dropout::attributes() const { return format("rate={} salt={}", rate, salt); }

std::vector<TensorType> Dropout::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2);
  require_floating("dropout", "x", inputs[0]);
  require_dtype("dropout", "counter", inputs[1], DType::kInt32);
  require_shape("dropout", "counter", inputs[1], {});
  if (!(rate >= 0 && float(rate) < 1))
    throw Error(Code::kValue, format("dropout: a rate of {}", rate))
        .hint("a rate is the share that is dropped: 0 <= rate < 1");
  return {inputs[0]};
}

std::vector<Value> Dropout::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  return {dropout(b, dys[0], node.input(1), rate, salt), Value{}};
}

uint32_t Dropout::threshold() const { return dropout_threshold(float(rate)); }

uint32_t dropout_threshold(float rate) { return uint32_t(std::min(double(rate) * 0x1p32, 0x1p32 - 1)); }
float dropout_scale(float rate) { return float(1 / (1 - double(rate))); }

Value dropout(Builder& b, Value x, Value counter, double rate, uint64_t salt) {
  return b.add(std::make_shared<Dropout>(rate, salt), {x, counter});
}

}  // namespace millpond::ops
