#include "ops/rule.h"

#include "base/format.h"

namespace millpond::ops {

std::string to_string(const Rule& rule) {
  std::string text;
  switch (rule.kind) {
    case Rule::Kind::kSgd: text = "sgd"; break;
    case Rule::Kind::kMomentum: text = format("{} momentum={}", rule.nesterov ? "nesterov" : "momentum", rule.momentum); break;
    case Rule::Kind::kAdam: text = format("adam beta1={} beta2={} epsilon={}", rule.beta1, rule.beta2, rule.epsilon); break;
  }
  if (rule.weight_decay != 0) text += format(" weight_decay={}", rule.weight_decay);
  return text;
}

}  // namespace millpond::ops
