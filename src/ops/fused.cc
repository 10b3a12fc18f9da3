#include "ops/fused.h"

#include "ops/check.h"

namespace millpond::ops {

std::string Fused::attributes() const {
  std::string text = format("{}x{} {} :", rows, cols, to_string(expression));
  for (const TensorType& t : types) text += " " + to_string(t);
  return text;
}

std::vector<TensorType> Fused::infer(std::span<const TensorType> inputs) const {
  auto refuse = [&](const std::string& why) {
    throw Error(Code::kShape, format("fused: {} in \"{}\" over {} x {}", why, to_string(expression), rows, cols));
  };
  if (inputs.size() != expression.inputs.size()) refuse(format("{} operands", inputs.size()));
  if (types.size() != expression.results.size())
    refuse(format("{} types for {} results", types.size(), expression.results.size()));
  if (const std::string why = violation(expression); !why.empty()) refuse(why);
  const int64_t extent[] = {rows * cols, cols, rows, 1}, collected[] = {rows * cols, cols, rows, 1};
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape.size() != extent[int(expression.inputs[i])])
      refuse(format("operand {} is {}, but {} elements are needed", i, to_string(inputs[i]),
                    extent[int(expression.inputs[i])]));
  for (size_t i = 0; i < types.size(); ++i) {
    const int64_t wanted = collected[int(expression.results[i].collect)];
    if (types[i].shape.size() != wanted)
      refuse(format("result {} is {}, but {} elements are made", i, to_string(types[i]), wanted));
  }
  return types;
}

std::vector<Value> Fused::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  return Operator::backward(b, node, dys);
}

graph::MemoryFacts Fused::memory() const {
  graph::MemoryFacts facts;  // of equal dtype and shape only: the plan checks
  for (size_t o = 0; o < expression.results.size(); ++o)
    for (size_t i = 0; i < expression.inputs.size(); ++i)
      if (expression.results[o].collect == Collect::kStore && expression.inputs[i] == Extent::kFull)
        facts.may_overwrite.push_back({int(o), int(i)});
  return facts;
}

double Fused::flops(std::span<const TensorType>, std::span<const TensorType>) const {
  return double(rows) * double(cols) * double(expression.code.size());
}

}  // namespace millpond::ops
