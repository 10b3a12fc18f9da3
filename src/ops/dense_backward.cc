#include "ops/dense_backward.h"

#include "ops/check.h"
#include "ops/dense_update.h"

namespace millpond::ops {

std::string DenseBackward::attributes() const {
  return format("{}{}{}", to_string(rule), bias ? " bias" : "",
                epilogue.empty() ? "" : " epilogue={" + to_string(epilogue) + "}");
}

std::vector<TensorType> DenseBackward::infer(std::span<const TensorType> inputs) const {
  const size_t extra = epilogue.empty() ? 0 : epilogue.inputs.size() - 1;
  if (inputs.size() != size_t(fixed_inputs()) + extra)
    throw Error(Code::kShape, format("dense_backward: {} operands, but {} are needed", inputs.size(),
                                     size_t(fixed_inputs()) + extra));
  std::vector<TensorType> types = DenseUpdate(rule, bias).infer(inputs.first(size_t(fixed_inputs())));
  if (epilogue.empty())
    types.push_back(inputs[0]);
  else
    for (const TensorType& t :
         infer_epilogue("dense_backward", epilogue, inputs[0], inputs.subspan(size_t(fixed_inputs()))))
      types.push_back(t);
  return types;
}

graph::MemoryFacts DenseBackward::memory() const {
  graph::MemoryFacts facts;
  for (int i = 0; i < state(); ++i) facts.in_place.push_back({i, 3 + i});
  // dx over x, and over whatever full operand of the epilogue (often x itself)
  facts.may_overwrite.push_back({state(), 0});
  for (size_t i = 1; i < epilogue.inputs.size(); ++i)
    if (epilogue.inputs[i] == Extent::kFull) facts.may_overwrite.push_back({state(), fixed_inputs() + int(i) - 1});
  return facts;
}

double DenseBackward::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 4.0 * double(inputs[0].shape.size()) * double(inputs[1].shape[1]);
}

}  // namespace millpond::ops
