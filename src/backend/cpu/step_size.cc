#include "ops/step_size.h"

#include <cmath>

#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

// beta^t from three tables of 64 powers: t = a + 64 b + 4096 c. std::pow takes 20 ns, two look-ups and two products 2 ns, and a step
// of a tiny model is 200 ns.
class Powers {
 public:
  explicit Powers(double beta) : beta_(beta) {
    for (int i = 0; i < 64; ++i) power_[0][i] = std::pow(beta, i), power_[1][i] = std::pow(beta, 64.0 * i), power_[2][i] = std::pow(beta, 4096.0 * i);
  }
  double operator()(int64_t t) const {
    if (t >= 64 * 64 * 64 || t < 0) return std::pow(beta_, double(t));
    return power_[0][t & 63] * power_[1][t >> 6 & 63] * power_[2][t >> 12];
  }

 private:
  double beta_, power_[3][64];
};

class StepSizeKernel final : public Kernel {
 public:
  explicit StepSizeKernel(const ops::Rule& rule) : adam_(rule.kind == ops::Rule::Kind::kAdam), first_(double(rule.beta1)), second_(double(rule.beta2)) {}
  void run(const Arguments& a, int, int, int) const noexcept override {
    const float rate = *a.input<float>(0);
    float* out = a.output<float>(0);
    out[0] = rate;
    out[1] = rate;
    if (!adam_) return;
    const int64_t t = *a.input<int64_t>(1) + 1;
    out[0] = float(double(rate) * std::sqrt(1 - second_(t)) / (1 - first_(t)));
  }

 private:
  bool adam_;
  Powers first_, second_;
};

}  // namespace

std::unique_ptr<Kernel> step_size(const ops::StepSize& op, const Request&) { return std::make_unique<StepSizeKernel>(op.rule); }

}  // namespace millpond::backend::cpu
