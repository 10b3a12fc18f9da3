#include "ops/step_size.h"

#include <cmath>
#include <cstring>

#include "backend/cpu/slow.h"
#include "ops/apply.h"

namespace millpond::backend::cpu {
namespace {

// beta^t from three tables of 64 powers: t = a + 64 b + 4096 c. std::pow takes 20 ns, two look-ups and two products 2
// ns, and a step of a tiny model is 200 ns.
class Powers {
 public:
  explicit Powers(double beta) : beta_(beta) {
    for (int i = 0; i < 64; ++i)
      power_[0][i] = std::pow(beta, i), power_[1][i] = std::pow(beta, 64.0 * i),
      power_[2][i] = std::pow(beta, 4096.0 * i);
  }
  double operator()(int64_t t) const {
    if (t >= 64 * 64 * 64 || t < 0) return std::pow(beta_, double(t));
    return power_[0][t & 63] * power_[1][t >> 6 & 63] * power_[2][t >> 12];
  }

 private:
  double beta_, power_[3][64];
};

// As a weight of its type would hold it.
double constant_of(const ops::Instruction& i) {
  return i.dtype == DType::kFloat64 ? i.immediate : double(float(i.immediate));
}

class StepSizeKernel final : public Kernel {
 public:
  static constexpr size_t kMost = 64;  // registers

  explicit StepSizeKernel(const ops::Rule& rule)
      : inputs_(int(rule.scalars.inputs.size())),
        made_(rule.made_scalars()),
        wide_(rule.dtype == DType::kFloat64),
        registers_(rule.scalars.inputs.size()) {
    const ops::Expression& e = rule.scalars;
    for (const ops::Instruction& i : e.code) {
      const int16_t to = int16_t(registers_.size());
      registers_.push_back(i.function == ops::Function::k_constant ? constant_of(i) : 0.0);
      if (i.function == ops::Function::k_constant) continue;
      Operation o{i.function, to, i.a, i.b};
      if (i.function == ops::Function::k_power && i.b == 1 && i.a >= int(e.inputs.size()) &&
          e.code[size_t(i.a) - e.inputs.size()].function == ops::Function::k_constant) {
        o.powers = int16_t(powers_.size());
        powers_.emplace_back(registers_[size_t(i.a)]);
      }
      code_.push_back(o);
    }
    for (const ops::Result& r : e.results) results_.push_back(r.reg);
  }

  void run(const Arguments& a, int, int, int) const noexcept override {
    double r[kMost];
    std::memcpy(r, registers_.data(), registers_.size() * sizeof(double));
    const int64_t t = *a.input<int64_t>(1) + 1;
    r[0] = double(*a.input<float>(0)), r[1] = double(t);
    for (int i = 2; i < inputs_; ++i) r[i] = double(*a.input<float>(i));
    for (const Operation& o : code_) r[o.to] = value(o, r, t);
    for (int i = 0; wide_ && i < made_; ++i) a.output<double>(0)[i] = r[results_[size_t(i)]];
    for (int i = wide_ ? made_ : 0; i < int(results_.size()); ++i)
      *(i < made_ ? a.output<float>(0) + i : a.output<float>(1 + i - made_)) = float(r[results_[size_t(i)]]);
  }

 private:
  struct Operation {
    ops::Function function;
    int16_t to, a, b, powers = -1;  // powers: of a constant by the number of the step
  };
  double value(const Operation& o, const double* r, int64_t t) const noexcept {
    switch (o.function) {  // the commonest without a call
      case ops::Function::k_add:
        return r[o.a] + r[o.b];
      case ops::Function::k_subtract:
        return r[o.a] - r[o.b];
      case ops::Function::k_multiply:
        return r[o.a] * r[o.b];
      case ops::Function::k_divide:
        return r[o.a] / r[o.b];
      case ops::Function::k_sqrt:
        return std::sqrt(r[o.a]);
      default:
        break;
    }
    if (o.powers >= 0) return powers_[size_t(o.powers)](t);
    return ops::apply(o.function, r[o.a], o.b < 0 ? 0.0 : r[o.b]);
  }
  int inputs_, made_;
  bool wide_;                      // the scalars are doubles
  std::vector<double> registers_;  // as they begin: constants in their places
  std::vector<Operation> code_;
  std::vector<Powers> powers_;
  std::vector<int16_t> results_;
};

}  // namespace

std::unique_ptr<Kernel> step_size(const ops::StepSize& op, const Request& request) {
  if (op.rule.scalars.inputs.size() + op.rule.scalars.code.size() > StepSizeKernel::kMost) return slow(op, request);
  return std::make_unique<StepSizeKernel>(op.rule);
}

}  // namespace millpond::backend::cpu
