#include "nn/activate.h"

#include <array>
#include <cmath>
#include <numbers>

#include "base/format.h"
#include "ops/binary.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace millpond {
namespace {
constexpr std::array<std::string_view, 16> kNames{"linear",       "relu", "relu6",   "leaky_relu", "elu",      "selu", "sigmoid", "hard_sigmoid",
                                                  "tanh",         "softmax", "softplus", "softsign",   "silu",     "gelu", "gelu_tanh", "exponential"};
}  // namespace

ActivationFunction::ActivationFunction(std::string_view name) {
  if (name == "swish") name = "silu";
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) {
      kind_ = Kind(i);
      return;
    }
  throw Error(Code::kUsage, format("activation \"{}\" is not known", name)).hint(format("known are {}", fmt::join(kNames, ", ")));
}

std::string_view ActivationFunction::name() const { return kNames[size_t(kind_)]; }

namespace nn {
using graph::Builder;
using graph::Value;
using ops::Function;

namespace {
Value elu_of(Builder& b, Value x, double alpha) {  // exp of the negative side only: of a large value it would overflow
  const Value below = ops::add(b, ops::exp(b, ops::binary(b, Function::k_minimum, x, 0.0)), -1);
  return ops::select(b, ops::binary(b, Function::k_greater, x, 0.0), x, alpha == 1 ? below : ops::multiply(b, below, alpha));
}
Value relu6_of(Builder& b, Value x) { return ops::binary(b, Function::k_minimum, ops::relu(b, x), 6.0); }
}  // namespace

Value activate(Builder& b, ActivationFunction f, Value x) {
  using Kind = ActivationFunction::Kind;
  switch (f.kind()) {
    case Kind::kLinear: return x;
    case Kind::kRelu: return ops::relu(b, x);
    case Kind::kRelu6: return relu6_of(b, x);
    case Kind::kLeakyRelu: return ops::maximum(b, x, ops::multiply(b, x, 0.2));
    case Kind::kElu: return elu_of(b, x, 1);
    case Kind::kSelu: return ops::multiply(b, elu_of(b, x, 1.67326324), 1.05070098);
    case Kind::kSigmoid: return ops::sigmoid(b, x);
    case Kind::kHardSigmoid: return ops::multiply(b, relu6_of(b, ops::add(b, x, 3)), 1.0 / 6);
    case Kind::kTanh: return ops::tanh(b, x);
    case Kind::kSoftmax: return ops::softmax(b, x);
    case Kind::kSoftplus:  // (x + |x|) / 2 instead of max(x, 0): its gradient at 0 is the right one, 1/2
      return ops::add(b, ops::multiply(b, ops::add(b, x, ops::abs(b, x)), 0.5), ops::log1p(b, ops::exp(b, ops::negate(b, ops::abs(b, x)))));
    case Kind::kSoftsign: return ops::divide(b, x, ops::add(b, ops::abs(b, x), 1));
    case Kind::kSilu: return ops::multiply(b, x, ops::sigmoid(b, x));
    case Kind::kGelu: return ops::multiply(b, ops::multiply(b, x, 0.5), ops::add(b, ops::erf(b, ops::multiply(b, x, std::numbers::sqrt2 / 2)), 1));
    case Kind::kGeluTanh: {
      const Value cube = ops::multiply(b, ops::multiply(b, ops::square(b, x), x), 0.044715);
      const Value inner = ops::multiply(b, ops::add(b, x, cube), std::sqrt(2 / std::numbers::pi));
      return ops::multiply(b, ops::multiply(b, x, 0.5), ops::add(b, ops::tanh(b, inner), 1));
    }
    case Kind::kExponential: return ops::exp(b, x);
  }
  return x;
}

}  // namespace nn
}  // namespace millpond
