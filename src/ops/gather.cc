#include "ops/gather.h"

#include "ops/check.h"
#include "ops/scatter_add.h"

namespace millpond::ops {

std::vector<TensorType> Gather::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2);
  require_rank("gather", "the table", inputs[0], 2);
  require_integer("gather", "index", inputs[1]);
  const Shape &table = inputs[0].shape, &index = inputs[1].shape;
  if (table[0] == 0 && index.size() > 0)
    throw Error(Code::kShape, format("gather: {} rows wanted of the empty table {}", index.size(), table))
        .hint("give the table at least one row");
  std::vector<int64_t> dims(index.begin(), index.end());
  dims.push_back(table[1]);
  return {{inputs[0].dtype, Shape(dims)}};
}

std::vector<Value> Gather::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  return {scatter_add(b, node.input(1), dys[0], node.input(0).shape()[0]), Value{}};
}

Value gather(Builder& b, Value table, Value index) { return b.add(std::make_shared<Gather>(), {table, index}); }

}  // namespace millpond::ops
