// Activations: functions of one tensor, by name or by constant: Dense(64, relu), Dense(64, "relu").
// Memory: all are element-wise but softmax; passes fold them into the kernel that makes their operand.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace millpond {

class EagerTensor;

class ActivationFunction {
 public:
  enum class Kind : uint8_t {
    kLinear,
    kRelu,
    kRelu6,
    kLeakyRelu,
    kElu,
    kSelu,
    kSigmoid,
    kHardSigmoid,
    kTanh,
    kSoftmax,
    kSoftplus,
    kSoftsign,
    kSilu,
    kGelu,
    kGeluTanh,
    kExponential
  };
  constexpr ActivationFunction() = default;
  constexpr ActivationFunction(Kind kind) : kind_(kind) {}
  /// Keras's names ("relu", "softmax", ...) and "gelu_tanh". Throws Error(kUsage) naming the known ones.
  ActivationFunction(std::string_view name);
  ActivationFunction(const char* name) : ActivationFunction(std::string_view(name)) {}
  ActivationFunction(const std::string& name) : ActivationFunction(std::string_view(name)) {}

  /// relu(x): computed at once (millpond/eager.h).
  EagerTensor operator()(const EagerTensor& x) const;

  constexpr Kind kind() const { return kind_; }
  std::string_view name() const;
  constexpr bool operator==(const ActivationFunction& o) const { return kind_ == o.kind_; }

 private:
  Kind kind_ = Kind::kLinear;
};

namespace activations {
inline constexpr ActivationFunction linear{ActivationFunction::Kind::kLinear};
inline constexpr ActivationFunction relu{ActivationFunction::Kind::kRelu};
inline constexpr ActivationFunction relu6{ActivationFunction::Kind::kRelu6};
inline constexpr ActivationFunction leaky_relu{ActivationFunction::Kind::kLeakyRelu};  // slope 0.2 below zero
inline constexpr ActivationFunction elu{ActivationFunction::Kind::kElu};
inline constexpr ActivationFunction selu{ActivationFunction::Kind::kSelu};
inline constexpr ActivationFunction sigmoid{ActivationFunction::Kind::kSigmoid};
inline constexpr ActivationFunction hard_sigmoid{ActivationFunction::Kind::kHardSigmoid};  // relu6(x + 3) / 6
inline constexpr ActivationFunction tanh{ActivationFunction::Kind::kTanh};
inline constexpr ActivationFunction softmax{ActivationFunction::Kind::kSoftmax};  // along the last axis
inline constexpr ActivationFunction softplus{ActivationFunction::Kind::kSoftplus};
inline constexpr ActivationFunction softsign{ActivationFunction::Kind::kSoftsign};
inline constexpr ActivationFunction silu{ActivationFunction::Kind::kSilu};
inline constexpr ActivationFunction gelu{ActivationFunction::Kind::kGelu};           // exact, by erf
inline constexpr ActivationFunction gelu_tanh{ActivationFunction::Kind::kGeluTanh};  // Keras: gelu(approximate=True)
inline constexpr ActivationFunction exponential{ActivationFunction::Kind::kExponential};
}  // namespace activations

// All but tanh, whose plain name is C's function: write "tanh" or activations::tanh.
using activations::elu, activations::exponential, activations::gelu, activations::gelu_tanh, activations::hard_sigmoid,
    activations::leaky_relu, activations::linear, activations::relu, activations::relu6, activations::selu,
    activations::sigmoid, activations::silu, activations::softmax, activations::softplus, activations::softsign;

}  // namespace millpond
