#include "passes/match.h"

#include "ops/broadcast_to.h"

namespace millpond::passes {

std::optional<double> uniform_constant(graph::Value v) {
  while (as<ops::BroadcastTo>(v)) v = v.node->inputs[0];
  if (v.node->role != graph::Role::kConstant || v.node->constant.size() == 0) return {};
  const double first = v.node->constant.at(0);
  for (int64_t i = 1; i < v.node->constant.size(); ++i)
    if (v.node->constant.at(i) != first) return {};
  return first;
}

}  // namespace millpond::passes
