#include "ops/transpose.h"

#include "ops/check.h"

namespace millpond::ops {

std::string Transpose::attributes() const { return format("order={}", fmt::join(order, ",")); }

std::vector<TensorType> Transpose::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1);
  const Shape& x = inputs[0].shape;
  std::vector<bool> seen(size_t(x.rank()), false);
  bool fits = int(order.size()) == x.rank();
  for (size_t i = 0; fits && i < order.size(); ++i) {
    fits = order[i] >= 0 && order[i] < x.rank() && !seen[order[i]];
    if (fits) seen[order[i]] = true;
  }
  if (!fits)
    throw Error(Code::kShape, format("transpose: [{}] is not an order of the {} dimensions of x {}",
                                     fmt::join(order, ", "), x.rank(), x))
        .hint("name every dimension once");
  std::vector<int64_t> dims;
  for (int o : order) dims.push_back(x[o]);
  return {{inputs[0].dtype, Shape(dims)}};
}

std::vector<Value> Transpose::backward(Builder& b, const Node&, std::span<const Value> dys) const {
  if (!dys[0]) return {Value{}};
  std::vector<int> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = int(i);
  return {transpose(b, dys[0], inverse)};
}

Value transpose(Builder& b, Value x, std::vector<int> order) {
  return b.add(std::make_shared<Transpose>(std::move(order)), {x});
}

}  // namespace millpond::ops
