#include "ops/optimizer_step.h"

#include "backend/cpu/blocks.h"
#include "backend/cpu/rule.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

class OptimizerStepKernel final : public Kernel {
 public:
  OptimizerStepKernel(const ops::Rule& rule, int64_t n, int threads)
      : rule_(rule, 1, n),
        runs_(n, rule_.by_hand() ? 0.4 : 0.2 + 0.06 * rule.operations(), 256),
        phases_{runs_.blocks},
        threads_(threads) {}
  bool missing() const { return rule_.missing(); }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override { return Bytes{rule_.own_bytes() * members(phases(), threads_)}; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    const int slots = rule_.slots();
    const Parameter p(a, slots, 0, 0, runs_.begin(block), runs_.end(block));
    const int64_t n = runs_.end(block) - runs_.begin(block);
    rule_.pass(rule_.step(a.input<float>(slots + 2), a.scratch + rule_.own_bytes() * member),
               a.input<float>(slots + 1) + runs_.begin(block), n, p.p, 0, n, 1, n);
  }

 private:
  PreparedRule rule_;
  Runs runs_;
  int phases_[1];
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel> optimizer_step(const ops::OptimizerStep& op, const Request& request) {
  if (!all_float(request.inputs)) return slow(op, request);
  auto kernel = std::make_unique<OptimizerStepKernel>(op.rule, request.outputs[0].shape.size(), request.threads);
  return kernel->missing() ? slow(op, request) : std::move(kernel);
}

}  // namespace millpond::backend::cpu
