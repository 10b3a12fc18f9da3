#include "ops/assign.h"

#include "base/format.h"

namespace millpond::ops {

std::vector<TensorType> Assign::infer(std::span<const TensorType> inputs) const {
  if (inputs[0] != inputs[1])
    throw Error(Code::kShape,
                format("assign: the variable is {}, the value {}", to_string(inputs[0]), to_string(inputs[1])));
  return {inputs[0]};
}

Value assign(Builder& b, Value variable, Value value) { return b.add(std::make_shared<Assign>(), {variable, value}); }

}  // namespace millpond::ops
