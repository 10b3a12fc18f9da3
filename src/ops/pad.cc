#include "ops/pad.h"

#include "ops/check.h"
#include "ops/slice.h"

namespace millpond::ops {

std::string Pad::attributes() const {
  return format("before={} after={} value={}", fmt::join(before, ","), fmt::join(after, ","), value);
}

std::vector<TensorType> Pad::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  const Shape& x = inputs[0].shape;
  bool fits = int(before.size()) == x.rank() && int(after.size()) == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = before[i] >= 0 && after[i] >= 0;
  if (!fits)
    throw Error(Code::kShape,
                format("pad: [{}] before and [{}] after x {}", fmt::join(before, ", "), fmt::join(after, ", "), x))
        .hint(format("give {} numbers each, none negative", x.rank()));
  Shape y = x;
  for (int i = 0; i < x.rank(); ++i) y = y.with(i, before[i] + x[i] + after[i]);
  return {{inputs[0].dtype, y}};
}

std::vector<Value> Pad::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return {dys[0] ? slice(b, dys[0], before, node.input(0).shape()) : Value{}};
}

Value pad(Builder& b, Value x, std::vector<int64_t> before, std::vector<int64_t> after, double value) {
  return b.add(std::make_shared<Pad>(std::move(before), std::move(after), value), {x});
}

}  // namespace millpond::ops
