#include "backend/reference/types.h"
#include "ops/step_size.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> step_size(const ops::StepSize& op, const Request&) {
  return loop([rule = op.rule](const Arguments& a) {
    const double rate = double(a.input<float>(0)[0]), t = double(a.input<int64_t>(1)[0]) + 1;
    double step = rate;
    if (rule.kind == ops::Rule::Kind::kAdam) step *= std::sqrt(1 - std::pow(double(rule.beta2), t)) / (1 - std::pow(double(rule.beta1), t));
    a.output<float>(0)[0] = float(step);
    a.output<float>(0)[1] = float(rate);
  });
}

}  // namespace millpond::backend::reference
