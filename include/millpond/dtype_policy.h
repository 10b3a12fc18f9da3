// DTypePolicy: what a layer keeps its weights in and what it computes in.
//
//   set_dtype_policy("mixed_bfloat16");                     // of every layer made from now on
//   Dense head(10, softmax);
//   head.set_dtype_policy("float32");                       // of this one; before it is first called
//
// Mixed policies keep weights in float32 and compute in a half type: activations take half the memory. Losses are
// float32 all the same, and with "mixed_float16" they are scaled, as by Keras's LossScaleOptimizer, so that small
// gradients do not vanish; a step whose gradients are not finite is left out, and the scale is halved.
#pragma once
#include <string>
#include <string_view>

#include "millpond/dtype.h"

namespace millpond {

struct DTypePolicy {
  DType variable = DType::kFloat32, compute = DType::kFloat32;

  constexpr DTypePolicy() = default;
  /// Keras's names: "float32", "float64", "bfloat16", "float16", "mixed_bfloat16", "mixed_float16". Throws
  /// Error(kUsage) naming them for any other.
  DTypePolicy(std::string_view name);
  DTypePolicy(const char* name) : DTypePolicy(std::string_view(name)) {}
  DTypePolicy(const std::string& name) : DTypePolicy(std::string_view(name)) {}
  std::string name() const;
  /// Losses must be scaled: weights are float32 and gradients float16.
  constexpr bool scales_losses() const { return variable == DType::kFloat32 && compute == DType::kFloat16; }
  constexpr bool operator==(const DTypePolicy&) const = default;
};

/// Of layers that are made from now on, in all threads, as keras.config.set_dtype_policy.
void set_dtype_policy(DTypePolicy policy);
DTypePolicy dtype_policy();

}  // namespace millpond
