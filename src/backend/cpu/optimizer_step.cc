#include "ops/optimizer_step.h"

#include "backend/cpu/blocks.h"
#include "backend/cpu/rule.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

class OptimizerStepKernel final : public Kernel {
 public:
  OptimizerStepKernel(const ops::Rule& rule, int64_t n) : rule_(rule), runs_(n, 0.4, 256), phases_{runs_.blocks} {}
  std::span<const int> phases() const override { return phases_; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    const int slots = rule_.slots();
    const Parameter p(a, slots, 0, 0, runs_.begin(block), runs_.end(block));
    const int64_t n = runs_.end(block) - runs_.begin(block);
    rule_.pass(rule_.step(a.input<float>(slots + 2)), a.input<float>(slots + 1) + runs_.begin(block), n, p.weight, p.slot0, p.slot1, n, 1, n);
  }

 private:
  PreparedRule rule_;
  Runs runs_;
  int phases_[1];
};

}  // namespace

std::unique_ptr<Kernel> optimizer_step(const ops::OptimizerStep& op, const Request& request) {
  if (!all_float(request.inputs)) return slow(op, request);
  return std::make_unique<OptimizerStepKernel>(op.rule, request.outputs[0].shape.size());
}

}  // namespace millpond::backend::cpu
