#include <cmath>

#include "backend/kernel.h"
#include "ops/step_size.h"

namespace millpond::backend::cpu {
namespace {

// 1 - beta^t. Where beta^t is below half an ulp of 1 there is nothing to compute: after 350 steps for Adam's beta1.
double one_less_power(double log_beta, double t) {
  const double e = log_beta * t;
  return e < -37 ? 1.0 : -std::expm1(e);
}

class StepSizeKernel final : public Kernel {
 public:
  explicit StepSizeKernel(const ops::Rule& rule) : adam_(rule.kind == ops::Rule::Kind::kAdam), log_beta1_(std::log(double(rule.beta1))), log_beta2_(std::log(double(rule.beta2))) {}
  void run(const Arguments& a, int, int, int) const noexcept override {
    const float rate = *a.input<float>(0);
    const double t = double(*a.input<int64_t>(1)) + 1;
    a.output<float>(0)[0] = adam_ ? float(double(rate) * std::sqrt(one_less_power(log_beta2_, t)) / one_less_power(log_beta1_, t)) : rate;
    a.output<float>(0)[1] = rate;
  }

 private:
  bool adam_;
  double log_beta1_, log_beta2_;
};

}  // namespace

std::unique_ptr<Kernel> step_size(const ops::StepSize& op, const Request&) { return std::make_unique<StepSizeKernel>(op.rule); }

}  // namespace millpond::backend::cpu
