#include "backend/reference/rule.h"
#include "backend/reference/types.h"
#include "ops/optimizer_step.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> optimizer_step(const ops::OptimizerStep& op, const Request& request) {
  const int64_t n = request.outputs[0].shape.size();
  return with_floating(request.outputs[0].dtype, [&]<class T>() {
    return loop([n, rule = op.rule](const Arguments& a) {
      const Parameter<T> p = parameter<T>(a, rule, 0, 0, n);
      const T* g = a.input<T>(rule.slots() + 1);
      for (int64_t i = 0; i < n; ++i) apply_rule(rule, p.weight, p.slots, i, load(g, i), a.input<float>(rule.slots() + 2));
    });
  });
}

}  // namespace millpond::backend::reference
