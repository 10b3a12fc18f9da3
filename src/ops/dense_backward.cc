#include "ops/dense_backward.h"

#include "base/format.h"

namespace millpond::ops {

std::string DenseBackward::attributes() const {
  return format("{}{}{}", to_string(rule), bias ? " bias" : "", epilogue.empty() ? "" : " epilogue={" + to_string(epilogue) + "}");
}

std::vector<TensorType> DenseBackward::infer(std::span<const TensorType> inputs) const {
  const size_t extra = epilogue.empty() ? 0 : epilogue.inputs.size() - 1;
  if (inputs.size() != size_t(fixed_inputs()) + extra)
    throw Error(Code::kShape, format("dense_backward: {} operands, but {} are needed", inputs.size(), size_t(fixed_inputs()) + extra));
  const Shape &x = inputs[0].shape, &dz = inputs[1].shape, &kernel = inputs[3].shape;
  if (x.rank() != 2 || dz.rank() != 2 || kernel != Shape{x[1], dz[1]} || x[0] != dz[0])
    throw Error(Code::kShape, format("dense_backward: x {}, dz {} and kernel {} do not go together", x, dz, kernel));
  std::vector<TensorType> types(inputs.begin() + 3, inputs.begin() + fixed_inputs());
  for (size_t i = 0; i < std::max<size_t>(1, epilogue.results.size()); ++i) types.push_back(inputs[0]);
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
