#include "ops/cond.h"

#include <algorithm>

#include "base/format.h"

namespace millpond::ops {

std::string Cond::attributes() const { return format("yes={} no={}", yes->number, no->number); }

double Cond::flops(std::span<const TensorType>, std::span<const TensorType>) const {
  return std::max(flops_of(yes->graph), flops_of(no->graph));
}

std::vector<TensorType> Cond::infer(std::span<const TensorType> inputs) const {
  if (inputs.empty() || inputs[0].dtype != DType::kBool || inputs[0].shape.size() != 1)
    throw Error(Code::kShape, format("cond: decided by {}", inputs.empty() ? "nothing" : to_string(inputs[0])))
        .hint("the first operand must be one bool");
  expect_inputs(*yes, inputs.subspan(1), "cond: the first body");
  expect_inputs(*no, inputs.subspan(1), "cond: the second body");
  const std::vector<TensorType> types = yes->outputs(), others = no->outputs();
  if (types.size() != others.size())
    throw Error(Code::kShape, format("cond: the bodies give {} and {} values", types.size(), others.size()));
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i] != others[i])
      throw Error(Code::kShape, format("cond: value {} is {} in the first body, {} in the second", i,
                                       to_string(types[i]), to_string(others[i])))
          .hint("both must give the same shapes and dtypes");
  return types;
}

std::vector<Value> cond(Builder& b, Value which, std::span<const Value> operands, const Write& yes, const Write& no) {
  std::vector<Value> all{which};
  all.insert(all.end(), operands.begin(), operands.end());
  std::vector<TensorType> types;
  for (Value v : operands) types.push_back(v.type());
  BodyRef first = write_body(b.layer(), types, yes), second = write_body(b.layer(), types, no);
  return b.add_all(std::make_shared<Cond>(std::move(first), std::move(second)), std::move(all));
}

}  // namespace millpond::ops
