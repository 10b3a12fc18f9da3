#include "ops/scatter_add.h"

#include "ops/check.h"
#include "ops/gather.h"

namespace millpond::ops {

std::string ScatterAdd::attributes() const { return format("count={}{}", count, onto ? " onto" : ""); }

std::vector<TensorType> ScatterAdd::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == (onto ? 3 : 2));
  require_integer("scatter_add", "index", inputs[0]);
  const Shape &index = inputs[0].shape, &rows = inputs[1].shape;
  if (rows.rank() != index.rank() + 1 || rows.without(-1) != index)
    throw Error(Code::kShape, format("scatter_add: rows {} do not go with index {}", rows, index))
        .hint("rows have the shape of index and one more dimension, the width");
  if (count < (index.size() > 0 ? 1 : 0))
    throw Error(Code::kValue, format("scatter_add: a table of {} rows", count)).hint("give it at least one row");
  if (inputs[1].dtype == DType::kBool)
    throw Error(Code::kDType, format("scatter_add: rows are {}", to_string(inputs[1])))
        .hint("cast rows to a number first");
  const TensorType table{inputs[1].dtype, {count, rows.back()}};
  if (onto)
    require_dtype("scatter_add", "onto", inputs[2], table.dtype),
        require_shape("scatter_add", "onto", inputs[2], table.shape);
  return {table};
}

graph::MemoryFacts ScatterAdd::memory() const {
  if (!onto) return {};
  return {.may_overwrite = {{0, 2}}};
}

std::vector<Value> ScatterAdd::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return no_gradients(node);
  std::vector<Value> dxs{Value{}, gather(b, dys[0], node.input(0))};
  if (onto) dxs.push_back(dys[0]);
  return dxs;
}

Value scatter_add(Builder& b, Value index, Value rows, int64_t count, Value onto) {
  std::vector<Value> inputs{index, rows};
  if (onto) inputs.push_back(onto);
  return b.add(std::make_shared<ScatterAdd>(count, bool(onto)), std::move(inputs));
}

}  // namespace millpond::ops
