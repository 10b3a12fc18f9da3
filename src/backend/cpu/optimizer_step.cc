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

// Weights of another type: the rule as an expression on their lanes.
class TypedOptimizerStep final : public Kernel {
 public:
  TypedOptimizerStep(const ops::Rule& rule, const Request& request)
      : slots_(rule.slot_count()),
        scalars_(rule.scalar_count()),
        scalar_(size_of(request.inputs.back().dtype).value),
        runs_(request.outputs[0].shape.size(), 0.4 + 0.12 * rule.operations(), 256),
        phases_{runs_.blocks},
        threads_(request.threads) {
    const graph::TensorType each{request.outputs[0].dtype, {1, runs_.count}};
    std::vector<graph::TensorType> operands(size_t(2 + slots_), each);
    operands.insert(operands.end(), size_t(scalars_), graph::TensorType{request.inputs.back().dtype, {}});
    const std::vector<graph::TensorType> results(size_t(1 + slots_), each);
    body_ = ExpressionKernel::make(rule.update, operands, results, {1, runs_.count}, false);
  }
  bool missing() const { return !body_ || runs_.count == 0; }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override { return Bytes{body_->own_bytes() * members(phases(), threads_)}; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    void* in[2 + ops::Rule::kMostSlots + ops::Rule::kMostScalars];
    in[0] = a.in[slots_ + 1];
    for (int k = 0; k <= slots_; ++k) in[1 + k] = a.in[k];
    for (int k = 0; k < scalars_; ++k) in[2 + slots_ + k] = static_cast<std::byte*>(a.in[slots_ + 2]) + k * scalar_;
    const int64_t begin = runs_.begin(block);
    body_->tile({in, a.out, a.scratch + body_->own_bytes() * member, nullptr}, {0, 1, begin, runs_.end(block) - begin});
  }

 private:
  int slots_, scalars_;
  int64_t scalar_;
  Runs runs_;
  int phases_[1];
  int threads_;
  std::unique_ptr<ExpressionKernel> body_;
};

}  // namespace

std::unique_ptr<Kernel> optimizer_step(const ops::OptimizerStep& op, const Request& request) {
  if (!all_float(request.inputs)) {
    auto typed = std::make_unique<TypedOptimizerStep>(op.rule, request);
    return typed->missing() ? slow(op, request) : std::move(typed);
  }
  auto kernel = std::make_unique<OptimizerStepKernel>(op.rule, request.outputs[0].shape.size(), request.threads);
  return kernel->missing() ? slow(op, request) : std::move(kernel);
}

}  // namespace millpond::backend::cpu
