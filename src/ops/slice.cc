#include "ops/slice.h"

#include "ops/check.h"
#include "ops/pad.h"

namespace millpond::ops {

std::string Slice::attributes() const { return format("starts={} sizes={}", fmt::join(starts, ","), sizes); }

std::vector<TensorType> Slice::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  const Shape& x = inputs[0].shape;
  bool fits = int(starts.size()) == x.rank() && sizes.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = starts[i] >= 0 && starts[i] + sizes[i] <= x[i];
  if (!fits)
    throw Error(Code::kShape, format("slice: {} from [{}] on is not inside x {}", sizes, fmt::join(starts, ", "), x))
        .hint("start + size may not pass the end of any dimension");
  return {{inputs[0].dtype, sizes}};
}

std::vector<Value> Slice::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return {Value{}};
  const Shape& x = node.input(0).shape();
  std::vector<int64_t> after;
  for (int i = 0; i < x.rank(); ++i) after.push_back(x[i] - starts[i] - sizes[i]);
  return {pad(b, dys[0], starts, after)};
}

Value slice(Builder& b, Value x, std::vector<int64_t> starts, Shape sizes) {
  return b.add(std::make_shared<Slice>(std::move(starts), sizes), {x});
}

}  // namespace millpond::ops
