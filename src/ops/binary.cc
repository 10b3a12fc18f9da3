#include "ops/binary.h"

#include "ops/check.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"

namespace millpond::ops {

std::string Binary::attributes() const { return std::string(to_string(function)); }

std::vector<TensorType> Binary::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() == 2 && arity(function) == 2);
  const TensorType &x = inputs[0], &y = inputs[1];
  const std::string_view name = to_string(function);
  if (x.dtype != y.dtype)
    throw Error(Code::kDType, format("{}: x is {}, but y is {}", name, to_string(x), to_string(y)))
        .hint(format("cast one of them; {} is not changed silently", x.dtype));
  const bool bits = function >= Function::k_left_shift && function <= Function::k_bitwise_xor;
  const bool logical = is_compare(function) || function == Function::k_maximum || function == Function::k_minimum ||
                       (bits && function >= Function::k_bitwise_and);
  if (function == Function::k_divide && !is_floating(x.dtype))
    throw Error(Code::kDType, format("divide: x is {}, but a floating type is needed", to_string(x)))
        .hint("cast x and y to float32 first, or take floor_divide");
  if (function == Function::k_power || function == Function::k_sigmoid_cross_entropy)
    require_floating(name, "x", x);
  else if (bits && x.dtype != DType::kBool)
    require_integer(name, "x", x);
  else if (x.dtype == DType::kBool && !logical)
    throw Error(Code::kDType, format("{}: x is {}", name, to_string(x))).hint("cast x and y to a number first");
  try {
    return {{is_compare(function) ? DType::kBool : x.dtype, broadcast(x.shape, y.shape)}};
  } catch (const Error& e) {
    throw Error(e.code(), format("{}: {}", name, e.text())).hint("make the dimensions equal, or one of them 1");
  }
}

std::vector<Value> Binary::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!dys[0] || is_compare(function)) return no_gradients(node);
  const Value x = node.input(0), y = node.input(1), z = node.output(), dz = dys[0];
  const Value zero = b.scalar(dz.dtype(), 0);
  Value dx, dy;
  switch (function) {
    case Function::k_add:
      dx = dz, dy = dz;
      break;
    case Function::k_subtract:
      dx = dz, dy = negate(b, dz);
      break;
    case Function::k_multiply:
      dx = multiply(b, dz, y), dy = multiply(b, dz, x);
      break;
    case Function::k_divide:
      dx = divide(b, dz, y), dy = negate(b, divide(b, multiply(b, dz, z), y));
      break;
    // a tie goes to x, as in TensorFlow
    case Function::k_maximum:
    case Function::k_minimum: {
      const Value first = function == Function::k_maximum ? greater_equal(b, x, y) : greater_equal(b, y, x);
      dx = select(b, first, dz, zero), dy = select(b, first, zero, dz);
      break;
    }
    case Function::k_power: {
      // the logarithm only where it exists, as in TensorFlow
      const Value positive = greater(b, x, zero);
      const Value safe = select(b, positive, x, b.scalar(x.dtype(), 1));
      dx = multiply(b, multiply(b, dz, y), power(b, x, add(b, y, -1)));
      dy = multiply(b, multiply(b, dz, z), log(b, safe));
      break;
    }
    case Function::k_gate:
      dx = gate(b, dz, y);
      break;
    case Function::k_sigmoid_cross_entropy:
      dx = multiply(b, dz, subtract(b, sigmoid(b, x), y)), dy = negate(b, multiply(b, dz, x));
      break;
    case Function::k_remainder:  // x - y floor(x / y), and the quotient is flat
      dx = dz, dy = negate(b, multiply(b, dz, floor_divide(b, x, y)));
      break;
    case Function::k_floor_divide:
    case Function::k_left_shift:
    case Function::k_right_shift:
    case Function::k_bitwise_and:
    case Function::k_bitwise_or:
    case Function::k_bitwise_xor:
      return no_gradients(node);
    default:
      return Operator::backward(b, node, dys);
  }
  return {sum_to(b, dx, x.shape()), dy ? sum_to(b, dy, y.shape()) : dy};
}

Value binary(Builder& b, Function f, Value x, Value y) { return b.add(std::make_shared<Binary>(f), {x, y}); }

Value sum_to(Builder& b, Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int extra = x.shape().rank() - shape.rank();
  std::vector<int> axes;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i < extra || shape[i - extra] != x.shape()[i]) axes.push_back(i);
  return reshape(b, axes.empty() ? x : sum(b, x, axes, true), shape);
}

}  // namespace millpond::ops
