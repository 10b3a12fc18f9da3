// Rule: how an optimiser turns a gradient into a change of a weight. Formulas are Keras's:
//   kSgd       w -= step g
//   kMomentum  v = momentum v - step g;  w += v            (nesterov: w += momentum v - step g)      slot: v
//   kAdam      m += (g - m)(1 - beta1);  s += (g^2 - s)(1 - beta2);  w -= step m / (sqrt(s) + epsilon)   slots: m, s
// weight_decay, if not 0, comes first: w -= learning_rate * weight_decay * w (AdamW).
#pragma once
#include <cstdint>
#include <string>

namespace millpond::ops {

struct Rule {
  enum class Kind : uint8_t { kSgd, kMomentum, kAdam };
  Kind kind = Kind::kSgd;
  bool nesterov = false;
  float momentum = 0;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-7f;
  float weight_decay = 0;
  bool operator==(const Rule&) const = default;
  int slots() const { return int(kind); }
};
/// "adam beta1=0.9 beta2=0.999 epsilon=1e-07"
std::string to_string(const Rule& rule);

}  // namespace millpond::ops
