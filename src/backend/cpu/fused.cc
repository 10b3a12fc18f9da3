#include "ops/fused.h"

#include "backend/cpu/blocks.h"
#include "backend/cpu/fused.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

class FusedKernel final : public Kernel {
 public:
  FusedKernel(std::unique_ptr<ExpressionKernel> body, Runs rows, Runs cols, int threads)
      : body_(std::move(body)),
        rows_(rows),
        cols_(cols),
        shared_(aligned(body_->shared_bytes())),
        own_(body_->own_bytes()) {
    workspace_ = Bytes{shared_ + own_ * threads};
    whole_ = {0, rows.count, 0, cols.count};
    phases_[0] = rows.blocks * cols.blocks;
    phase_count_ = body_->unfinished() ? 2 : 1;
  }
  std::span<const int> phases() const override { return {phases_, size_t(phase_count_)}; }
  Bytes workspace() const override { return workspace_; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    const ExpressionCall call{a.in, a.out, a.scratch + shared_ + own_ * member, a.scratch};
    if (phase == 1) return body_->finish(call);
    if (phases_[0] == 1) return body_->tile(call, whole_);
    const int r = block / cols_.blocks, c = block % cols_.blocks;
    const int64_t row = rows_.begin(r), col = cols_.begin(c);
    body_->tile(call, {row, rows_.end(r) - row, col, cols_.end(c) - col, r, c});
  }

 private:
  std::unique_ptr<ExpressionKernel> body_;
  Runs rows_, cols_;
  int64_t shared_, own_;
  Bytes workspace_;
  Tile whole_;
  int phases_[2] = {1, 1};
  int phase_count_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> run_expression(const ops::Expression& e, int64_t rows, int64_t cols, const Request& request) {
  if (ExpressionKernel::flat(e)) cols *= rows, rows = 1;
  std::unique_ptr<ExpressionKernel> body =
      ExpressionKernel::make(e, request.inputs, request.outputs, {rows, cols}, false);
  if (!body) return nullptr;
  const double each = body->cost();
  // by rows; a few long ones are cut across, into whole cache lines
  const Runs by_row(rows, each * double(cols));
  const Runs by_col(cols, each * double(rows) / double(by_row.blocks), 64, std::max(1, kMaxBlocks / by_row.blocks));
  if (by_row.blocks * by_col.blocks > 1)
    body =
        ExpressionKernel::make(e, request.inputs, request.outputs, {rows, cols, by_row.blocks, by_col.blocks}, false);
  return std::make_unique<FusedKernel>(std::move(body), by_row, by_col, request.threads);
}

std::unique_ptr<Kernel> fused(const ops::Fused& op, const Request& request) {
  std::unique_ptr<Kernel> kernel = run_expression(op.expression, op.rows, op.cols, request);
  return kernel ? std::move(kernel) : slow(op, request);
}

}  // namespace millpond::backend::cpu
