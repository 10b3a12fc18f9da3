#include "graph/builder.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "base/half.h"

namespace millpond::graph {

Value Builder::input(std::string name, TensorType type) {
  Node n;
  n.role = Role::kInput;
  n.name = std::move(name);
  n.types = {std::move(type)};
  return graph_.add(std::move(n))->output();
}

Value Builder::variable(std::string name, TensorType type, const void* identity) {
  if (const Node* known = graph_.variable(identity)) return known->output();
  Node n;
  n.role = Role::kVariable;
  n.name = std::move(name);
  n.types = {std::move(type)};
  n.variable = identity;
  return graph_.add(std::move(n))->output();
}

Value Builder::constant(Tensor value, std::string name) {
  Node n;
  n.role = Role::kConstant;
  n.name = std::move(name);
  n.types = {{value.dtype(), value.shape()}};
  n.constant = std::move(value);
  n.rank = rank_;
  return graph_.add(std::move(n))->output();
}

Value Builder::scalar(DType dtype, double value) {
  Tensor t(DType::kFloat64, Shape{});
  t.values<double>()[0] = value;
  return constant(t.astype(dtype));
}

std::vector<Value> Builder::add_all(std::shared_ptr<const Operator> op, std::vector<Value> inputs) {
  Node n;
  std::vector<TensorType> types;
  for (Value v : inputs) {
    MP_ASSERT(v);
    types.push_back(v.type());
  }
  try {
    n.types = op->infer(types);
    for (const TensorType& t : n.types)  // a graph is of tensors, and None is a word of models that are being built
      if (!t.shape.known())
        throw Error(Code::kShape,
                    format("{}: the result has the shape {}, in which a dimension is below zero", op->name(), t.shape));
  } catch (Error& e) {
    if (!layer_.empty()) e.add("layer", layer_);
    throw;
  }
  n.op = std::move(op);
  n.inputs = std::move(inputs);
  n.layer = layer_;
  n.phase = phase_;
  n.rank = rank_;
  Node* made = graph_.add(std::move(n));
  std::vector<Value> outputs;
  for (size_t i = 0; i < made->types.size(); ++i) outputs.push_back(made->output(int(i)));
  return outputs;
}

void Builder::widen(Node& node, std::shared_ptr<const Operator> op) {
  std::vector<TensorType> types;
  for (Value v : node.inputs) types.push_back(v.type());
  types = op->infer(types);
  MP_ASSERT(types.size() >= node.types.size() && std::equal(node.types.begin(), node.types.end(), types.begin()));
  node.op = std::move(op);
  node.types = std::move(types);
}

std::vector<Value> Operator::backward(Builder&, const Node& node, std::span<const Value>) const {
  throw Error(Code::kUnsupported, format("{} has no gradient", node.op->name())).with("layer", node.layer);
}

double Operator::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return double(outputs[0].shape.size());
}

}  // namespace millpond::graph
