// DenseKernel: backward of a dense layer with its update: dense_update, and dense_backward, which has dx beside it.
//
// A piece of input features at a time, each by one thread, so that weights and slots are read and written once and no gradient array
// exists:
//   wide    dx^T = w dz^T (LIBXSMM; dz^T is made in a phase of its own), then x^T dz in tiles of at most 32 KiB through the rule,
//           then dx^T turned back through the epilogue: dx may lie over x, so it is stored last.
//   narrow  fewer outputs than a vector has lanes: loops over vectors of features (dense_kernels.h).
//   small   all in one call, with a rule that is written out.
// Memory: dz^T and partial sums of the epilogue, shared; a tile of gradient and of dx, and what the rule asks for, a thread.
#pragma once
#include "backend/cpu/blocks.h"
#include "backend/cpu/dense_kernels.h"
#include "backend/cpu/expression.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/rule.h"

namespace millpond::backend::cpu {

class DenseKernel final : public Kernel {
 public:
  /// Null: no fast path for these types. `epilogue` null: dx is not wanted.
  static std::unique_ptr<Kernel> make(const ops::Rule& rule, bool bias, const ops::Expression* epilogue,
                                      const Request& request);

  std::span<const int> phases() const override { return {phases_, size_t(phase_count_)}; }
  Bytes workspace() const override { return Bytes{shared_bytes_ + own_bytes_ * members(phases(), threads_)}; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override;
  void generate() override;
  Bytes held() const override;

 private:
  DenseKernel(const ops::Rule& rule, bool bias, bool dx, const Request& request);
  enum class Path : uint8_t { kSmall, kFew, kWide };
  enum class Task : uint8_t { kTurn, kMain, kFinish };

  struct Own {  // a thread's scratch
    float* gradient;
    float* dx;    // [features, rows] or, narrow, [rows, features]
    float* tile;  // [rows, features]
    std::byte *rule, *epilogue;
  };
  Own own(const Arguments& a, int member) const;
  void prepare_wide();
  void small(const Arguments& a, int member) const noexcept;
  void narrow(const Arguments& a, int piece, const Own& own) const noexcept;
  void wide(const Arguments& a, int piece, const Own& own) const noexcept;
  void update_bias(const Arguments& a, int block, const Own& own) const noexcept;
  void end_tile(const Arguments& a, int piece, const float* tile, int64_t ld, const Own& own) const noexcept;
  ExpressionCall call(const Arguments& a, std::byte* own) const {
    return {a.in + fixed_inputs_ - 1, a.out + state_, own, a.scratch + turned_bytes_};
  }

  PreparedRule rule_;
  bool bias_, dx_;
  int64_t rows_, in_, out_;
  int threads_, state_, fixed_inputs_;
  Path path_;
  Pieces pieces_;
  DenseKernels::SmallUpdate small_update_ = nullptr;
  DenseKernels::SmallBackward small_backward_ = nullptr;  // one output
  std::unique_ptr<ExpressionKernel> epilogue_;
  int gate_ = -1;  // operand whose sign gates dx: the commonest epilogue, without a tile
  int phases_[3] = {1, 1, 1};
  Task tasks_[3] = {Task::kMain, Task::kFinish, Task::kFinish};
  int phase_count_ = 1;

  // wide
  Runs turns_;  // columns of dz
  int64_t panel_ = 0, row_chunk_ = 0, out_chunk_ = 0, batch_ = 0;
  struct Products {          // for whole pieces and for the last
    Gemm gradient[2][2][2];  // [last panel][last row chunk][add]
    Gemm input[2][2][2];     // [last batch][last out chunk][add]
  };
  Products products_[2];

  int64_t turned_bytes_ = 0, shared_bytes_ = 0;
  int64_t gradient_bytes_ = 0, dx_bytes_ = 0, tile_bytes_ = 0, rule_bytes_ = 0, own_bytes_ = 0;
};

}  // namespace millpond::backend::cpu
