#include "ops/unary.h"

#include <cmath>
#include <numbers>

#include "ops/binary.h"
#include "ops/check.h"

namespace millpond::ops {

std::string Unary::attributes() const { return std::string(to_string(function)); }

std::vector<TensorType> Unary::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 1 && arity(function) == 1);
  switch (function) {
    case Function::k_negate:
    case Function::k_square:
    case Function::k_abs:
    case Function::k_sign:
    case Function::k_relu:
      if (inputs[0].dtype == DType::kBool)
        throw Error(Code::kDType, format("{}: x is {}", to_string(function), to_string(inputs[0])))
            .hint("cast x to a number first");
      break;
    default:
      require_floating(to_string(function), "x", inputs[0]);
  }
  return {inputs[0]};
}

std::vector<Value> Unary::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0]) return {Value{}};
  const Value x = node.input(0), y = node.output(), dy = dys[0];
  auto one_minus = [&](Value v) { return subtract(b, b.scalar(v.dtype(), 1), v); };
  switch (function) {
    case Function::k_negate:
      return {negate(b, dy)};
    case Function::k_exp:
      return {multiply(b, dy, y)};
    case Function::k_log:
      return {divide(b, dy, x)};
    case Function::k_log1p:
      return {divide(b, dy, add(b, x, 1))};
    case Function::k_sqrt:
      return {divide(b, multiply(b, dy, 0.5), y)};
    case Function::k_rsqrt:
      return {multiply(b, multiply(b, dy, -0.5), multiply(b, y, square(b, y)))};
    case Function::k_square:
      return {multiply(b, multiply(b, dy, 2), x)};
    case Function::k_abs:
      return {multiply(b, dy, sign(b, x))};
    case Function::k_sign:
      return {Value{}};
    case Function::k_tanh:
      return {multiply(b, dy, one_minus(square(b, y)))};
    case Function::k_sigmoid:
      return {multiply(b, dy, multiply(b, y, one_minus(y)))};
    case Function::k_relu:
      return {gate(b, dy, y)};  // y, not x: the plan may write y over x
    case Function::k_erf:
      return {multiply(b, multiply(b, dy, 2 * std::numbers::inv_sqrtpi), exp(b, negate(b, square(b, x))))};
    default:
      return Operator::backward(b, node, dys);
  }
}

Value unary(Builder& b, Function f, Value x) { return b.add(std::make_shared<Unary>(f), {x}); }

}  // namespace millpond::ops
