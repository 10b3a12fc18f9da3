#include "nn/activate.h"

#include <array>
#include <cmath>
#include <numbers>

#include "base/format.h"
#include "nn/options.h"
#include "ops/binary.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {
using graph::Builder;
using graph::Value;
using ops::Function;

namespace {
Value elu_of(Builder& b, Value x, double alpha) {  // exp of the negative side only: of a large value it would overflow
  const Value below = ops::add(b, ops::exp(b, ops::binary(b, Function::k_minimum, x, 0.0)), -1);
  return ops::select(b, ops::binary(b, Function::k_greater, x, 0.0), x,
                     alpha == 1 ? below : ops::multiply(b, below, alpha));
}
Value relu6_of(Builder& b, Value x) { return ops::binary(b, Function::k_minimum, ops::relu(b, x), 6.0); }
Value softplus_of(Builder& b, Value x) {  // (x + |x|) / 2 instead of max(x, 0): its gradient at 0 is the right one, 1/2
  return ops::add(b, ops::multiply(b, ops::add(b, x, ops::abs(b, x)), 0.5),
                  ops::log1p(b, ops::exp(b, ops::negate(b, ops::abs(b, x)))));
}
Value gelu_of(Builder& b, Value x) {
  return ops::multiply(b, ops::multiply(b, x, 0.5),
                       ops::add(b, ops::erf(b, ops::multiply(b, x, std::numbers::sqrt2 / 2)), 1));
}
Value gelu_tanh_of(Builder& b, Value x) {
  const Value cube = ops::multiply(b, ops::multiply(b, ops::square(b, x), x), 0.044715);
  const Value inner = ops::multiply(b, ops::add(b, x, cube), std::sqrt(2 / std::numbers::pi));
  return ops::multiply(b, ops::multiply(b, x, 0.5), ops::add(b, ops::tanh(b, inner), 1));
}

struct Activated {
  std::string_view name;
  Value (*of)(Builder& b, Value x);
};
// In the order of ActivationFunction::Kind.
constexpr std::array<Activated, 16> kActivations{{
    {"linear", [](Builder&, Value x) { return x; }},
    {"relu", [](Builder& b, Value x) { return ops::relu(b, x); }},
    {"relu6", relu6_of},
    {"leaky_relu", [](Builder& b, Value x) { return ops::maximum(b, x, ops::multiply(b, x, 0.2)); }},
    {"elu", [](Builder& b, Value x) { return elu_of(b, x, 1); }},
    {"selu", [](Builder& b, Value x) { return ops::multiply(b, elu_of(b, x, 1.67326324), 1.05070098); }},
    {"sigmoid", [](Builder& b, Value x) { return ops::sigmoid(b, x); }},
    {"hard_sigmoid", [](Builder& b, Value x) { return ops::multiply(b, relu6_of(b, ops::add(b, x, 3)), 1.0 / 6); }},
    {"tanh", [](Builder& b, Value x) { return ops::tanh(b, x); }},
    {"softmax", [](Builder& b, Value x) { return ops::softmax(b, x); }},
    {"softplus", softplus_of},
    {"softsign", [](Builder& b, Value x) { return ops::divide(b, x, ops::add(b, ops::abs(b, x), 1)); }},
    {"silu", [](Builder& b, Value x) { return ops::multiply(b, x, ops::sigmoid(b, x)); }},
    {"gelu", gelu_of},
    {"gelu_tanh", gelu_tanh_of},
    {"exponential", [](Builder& b, Value x) { return ops::exp(b, x); }},
}};
static_assert(kActivations.size() == size_t(ActivationFunction::Kind::kExponential) + 1);
}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const Activated& a : kActivations) names.emplace_back(a.name);
  return names;
}

std::optional<ActivationFunction> find_activation(std::string_view name) {
  if (name == "swish") name = "silu";
  for (size_t i = 0; i < kActivations.size(); ++i)
    if (name == kActivations[i].name) return ActivationFunction(ActivationFunction::Kind(i));
  return {};
}

Value activate(Builder& b, ActivationFunction f, Value x) { return kActivations[size_t(f.kind())].of(b, x); }

}  // namespace nn

ActivationFunction::ActivationFunction(std::string_view name) {
  const auto found = nn::find_activation(name);
  if (!found)
    throw Error(Code::kUsage, format("activation \"{}\" is not known", name))
        .hint(nn::meant(name, nn::activation_names()));
  *this = *found;
}

std::string_view ActivationFunction::name() const { return nn::kActivations[size_t(kind_)].name; }

}  // namespace millpond
