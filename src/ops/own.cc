#include "ops/own.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/format.h"

namespace millpond {
namespace ops {
namespace {

constexpr std::string_view kTaken[] = {
#define MP_OPERATOR(Class, name) #name,
#define MP_FLOW(Class, name) #name,
#include "ops/list.inc"
};

extend::Type type_of(const TensorType& t) { return {t.dtype, t.shape}; }

}  // namespace

std::string class_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  std::string name = status == 0 ? text.get() : type.name();
  for (const std::string_view hidden : {"(anonymous namespace)::"})
    if (const size_t at = name.find(hidden); at != std::string::npos) name.erase(at, hidden.size());
  return name;
}

Own::Own(std::shared_ptr<const extend::OwnOperator> o) : own(std::move(o)) {
  if (!own) throw Error(Code::kUsage, "extend: an operator is wanted, but there is none");
  const std::string given = own->name();
  if (given.empty() || std::ranges::find(kTaken, std::string_view(given)) != std::end(kTaken))
    throw Error(Code::kUsage, given.empty() ? format("{}: the operator has no name", who())
                                            : format("{}: an operator of Millpond's has this name", who()))
        .hint("let name() return another one");
}

std::string Own::who() const {
  const extend::OwnOperator& operation = *own;
  return format("operator \"{}\" (class {})", operation.name(), class_name(typeid(operation)));
}

std::string Own::attributes() const {
  const extend::OwnOperator& operation = *own;
  const std::string more = operation.attributes();
  return format("{} {}{}{}", operation.name(), class_name(typeid(operation)), more.empty() ? "" : " ", more);
}

double Own::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  if (dynamic_cast<const extend::OwnElementwise*>(own.get())) return Operator::flops(inputs, outputs);
  return std::numeric_limits<double>::infinity();
}

std::vector<TensorType> Own::infer(std::span<const TensorType> inputs) const {
  std::vector<extend::Type> types;
  for (const TensorType& t : inputs) types.push_back(type_of(t));
  std::vector<TensorType> made;
  for (const extend::Type& t : own->infer(types)) made.push_back({t.dtype, t.shape});
  if (made.empty()) throw Error(Code::kUsage, format("{}: infer gives no results", who()));
  return made;
}

std::vector<Value> Own::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  const auto outside = [&](Value v) { return v ? extend::Value(b, v.node, v.output) : extend::Value(); };
  std::vector<extend::Value> in, out, dout;
  for (Value v : node.inputs) in.push_back(outside(v));
  for (size_t i = 0; i < node.types.size(); ++i) out.push_back(outside(node.output(int(i))));
  for (Value v : dys) dout.push_back(outside(v));
  const std::vector<extend::Value> found = own->gradient(in, out, dout);
  if (found.size() != in.size())
    throw Error(Code::kUsage, format("{}: gradient gives {} values for {} operands", who(), found.size(), in.size()))
        .hint("give one for each operand; an empty Value where there is none");
  std::vector<Value> gradients;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] && found[i].type() != in[i].type())
      throw Error(Code::kShape,
                  format("{}: the gradient for operand {} is {}, but the operand {}", who(), i,
                         to_string(TensorType{found[i].dtype(), found[i].shape()}), to_string(node.inputs[i].type())));
    gradients.push_back(found[i] ? Value{found[i].node(), found[i].output()} : Value{});
  }
  return gradients;
}

}  // namespace ops

namespace extend {

namespace {
graph::Value inside_of(const Value& v) {
  if (!v) throw Error(Code::kUsage, "extend: an empty Value has neither shape nor dtype");
  return {v.node(), v.output()};
}
}  // namespace

const Shape& Value::shape() const { return inside_of(*this).shape(); }
DType Value::dtype() const { return inside_of(*this).dtype(); }

std::vector<Value> OwnOperator::gradient(std::span<const Value>, std::span<const Value>, std::span<const Value>) const {
  throw Error(Code::kUnsupported,
              format("operator \"{}\" (class {}) has no gradient", name(), ops::class_name(typeid(*this))))
      .hint("override gradient(), or keep trainable weights from reaching it");
}

std::vector<Type> OwnElementwise::infer(std::span<const Type> inputs) const {
  for (const Type& t : inputs)
    if (t.dtype != DType::kFloat32 || t != inputs[0])
      throw Error(Code::kShape,
                  format("operator \"{}\" (class {}): operands are {}{} and {}{}", name(),
                         ops::class_name(typeid(*this)), inputs[0].dtype, inputs[0].shape, t.dtype, t.shape))
          .hint("all must be float32 and of one shape");
  if (inputs.empty())
    throw Error(Code::kUsage,
                format("operator \"{}\" (class {}) is called on nothing", name(), ops::class_name(typeid(*this))));
  return {inputs[0]};
}

void OwnElementwise::compute(std::span<const Array> inputs, std::span<const Array> outputs) const {
  constexpr size_t kMost = 16;
  const float* in[kMost];
  const size_t n = std::min(inputs.size(), kMost);
  for (size_t i = 0; i < n; ++i) in[i] = static_cast<const float*>(inputs[i].data);
  apply({in, n}, static_cast<float*>(outputs[0].data), inputs[0].type.shape.size());
}

}  // namespace extend
}  // namespace millpond
