#include "ops/optimizer_step.h"
#include "backend/reference/rule.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> optimizer_step(const ops::OptimizerStep& op, const Request& request) {
  const int64_t n = request.outputs[0].shape.size();
  const int slots = op.rule.slot_count();
  const RuleOnElements rule(op.rule, request.outputs[0].dtype, n);
  return with_floating(request.outputs[0].dtype, [&]<class T>() {
    return loop(
        [n, slots, rule](const Arguments& a) {
          const RuleOnElements::Parameter<T> p(rule, a, 0, 0, n, a.in[slots + 2], a.scratch);
          const T* g = a.input<T>(slots + 1);
          for (int64_t i = 0; i < n; ++i) p.step(i, double(load(g, i)));
        },
        rule.workspace());
  });
}

}  // namespace millpond::backend::reference
