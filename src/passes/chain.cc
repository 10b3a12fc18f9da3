#include "passes/chain.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/select.h"
#include "passes/match.h"

namespace millpond::passes {

using graph::Node;
using graph::Value;
using ops::Function;

namespace {

// An instruction holds its constant as a double, which has not every whole number of 64 bits.
bool single_constant(Value v) {
  if (v.node->role != graph::Role::kConstant || v.node->constant.size() != 1) return false;
  return size_of(v.dtype()) < Bytes{8} || is_floating(v.dtype()) || std::abs(v.node->constant.at(0)) <= 0x1p53;
}

}  // namespace

bool fits_chain(const Node& n, const Shape& full) {
  if (n.role != graph::Role::kOperator || n.types.size() != 1) return false;
  if (!as<ops::Unary>(&n) && !as<ops::Binary>(&n) && !as<ops::Select>(&n) && !as<ops::Cast>(&n) &&
      !as<ops::Dropout>(&n))
    return false;
  if (n.types[0].shape.size() != full.size() || extent_in(n.types[0].shape, full) != ops::Extent::kFull) return false;
  // A counter of one element has a kernel of its own, which costs less than any chain.
  if (is_integer(n.types[0].dtype) && n.types[0].shape.size() <= 1) return false;
  return std::ranges::all_of(n.inputs, [&](const Value& v) { return extent_in(v.shape(), full).has_value(); });
}

int16_t Chain::emit(ops::Instruction i) {
  code_.push_back(i);
  return int16_t(kCode + int(code_.size()) - 1);
}

int16_t Chain::first(Value v) {
  const auto r = int16_t(operands_.size());
  operands_.push_back(v);
  extents_.push_back(*extent_in(v.shape(), full_));
  return registers_[{v.node, v.output}] = r;
}

int16_t Chain::operand(Value v) {
  if (const auto it = registers_.find({v.node, v.output}); it != registers_.end()) return it->second;
  if (!single_constant(v)) return first(v);
  ops::Instruction i{Function::k_constant};
  i.immediate = v.node->constant.at(0);
  i.dtype = v.dtype();
  return registers_[{v.node, v.output}] = emit(i);
}

void Chain::absorb(const Node& n) {
  ops::Instruction i{};
  if (const auto* op = as<ops::Unary>(&n))
    i.function = op->function;
  else if (const auto* bin = as<ops::Binary>(&n))
    i.function = bin->function;
  else if (as<ops::Select>(&n))
    i.function = Function::k_select;
  else if (const auto* dropout = as<ops::Dropout>(&n))
    i.function = Function::k_dropout, i.immediate = float(dropout->rate), i.salt = dropout->salt;
  else if (const auto* cast = as<ops::Cast>(&n))
    i.function = Function::k_cast, i.dtype = cast->dtype;
  int16_t* slots[] = {&i.a, &i.b, &i.c};
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    // a counter is read as raw bits, so it must stay an operand
    *slots[k] =
        i.function == Function::k_dropout && k == 1 && !has(n.inputs[k]) ? first(n.inputs[k]) : operand(n.inputs[k]);
  }
  registers_[{&n, 0}] = emit(i);
}

ops::Expression Chain::finish(std::vector<ops::Result> results) const {
  const auto number = [&](int16_t r) { return r >= kCode ? int16_t(r - kCode + int(operands_.size())) : r; };
  ops::Expression e;
  e.inputs = extents_;
  e.code = code_;
  for (ops::Instruction& i : e.code)
    for (int16_t* r : {&i.a, &i.b, &i.c})
      if (*r >= 0) *r = number(*r);
  for (ops::Result& r : results) r.reg = number(r.reg);
  e.results = std::move(results);
  return e;
}

}  // namespace millpond::passes
