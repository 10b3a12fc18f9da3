// MatMulKernel: c = a b with an epilogue, in tiles.
//
//   wide    The product is cut into panels of columns, tiles of rows and chunks of the inner dimension, each of which
//           is one LIBXSMM product: LIBXSMM does not block for caches itself, and falls to half its speed where b
//           leaves L2. A transposed b is transposed back chunk by chunk. A b whose rows are not whole vectors is
//           fetched into L2 chunk by chunk when few rows of a share it, or copied when the inner dimension is split,
//           because loads from memory across cache lines cost more. A transposed a is left to LIBXSMM, which has a flag
//           for it. A long inner dimension with few tiles is split into parts, and a second phase adds their results in
//           order.
//   few     There are fewer columns than a vector has lanes (or, with b transposed, fewer rows): the elements are dot
//           products. A very long inner dimension is split into blocks, and a second phase adds their partial results
//           in order.
//   tiny    The whole product is one call.
// The product of a tile is made in the place where the epilogue stores a result, otherwise in scratch.
// Memory: each thread has a tile and a transposed chunk; beside that there are the partial results, and what the
// epilogue needs.
#pragma once
#include "backend/cpu/blocks.h"
#include "backend/cpu/dense_kernels.h"
#include "backend/cpu/expression.h"
#include "backend/cpu/gemm.h"
#include "ops/matmul.h"

namespace millpond::backend::cpu {

/// Rows, columns, inner dimension and batches of a product, and where in its operands a batch lies.
struct ProductSizes {
  ProductSizes() = default;
  ProductSizes(const ops::MatMul& op, const Request& request);
  /// In elements.
  int64_t offset(int64_t batch, int operand) const;

  bool transpose_a_ = false, transpose_b_ = false;
  int64_t batches_ = 1, rows_ = 0, cols_ = 0, inner_ = 0;
  int batch_rank_ = 0;
  int64_t batch_dims_[Shape::kMaxRank] = {}, batch_steps_[2][Shape::kMaxRank] = {};
};

class MatMulKernel final : public Kernel, private ProductSizes {
 public:
  /// Returns null where there is no fast path.
  static std::unique_ptr<Kernel> make(const ops::MatMul& op, const Request& request);

  std::span<const int> phases() const override { return {phases_, size_t(phase_count_)}; }
  Bytes workspace() const override { return Bytes{shared_bytes_ + own_bytes_ * members(phases(), threads_)}; }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override;
  void generate() override;
  Bytes held() const override;

 private:
  enum class Path : uint8_t { kTiny, kFew, kFewSplit, kFewRows, kWide, kWideSplit };
  struct Own {
    float *tile, *turned, *sums;
    std::byte* epilogue;
  };
  struct Place {  // of a tile
    int64_t batch, row, rows, col, cols;
    int row_block, col_block;
  };

  void choose_path();
  bool prepare_wide();
  Grid grid() const;
  Own own(const Arguments& a, int member) const;
  const float* a_of(const Arguments& a, int64_t batch) const { return a.input<float>(0) + offset(batch, 0); }
  const float* b_of(const Arguments& a, int64_t batch) const { return a.input<float>(1) + offset(batch, 1); }
  Place place(int tile) const;
  /// Where the product of a tile goes. `ld` is set to the distance between two of its rows.
  float* product(const Arguments& a, const Place& p, const Own& o, int64_t& ld) const;
  void end(const Arguments& a, const Place& p, const float* product, int64_t ld, const Own& o) const noexcept;
  void wide(const Arguments& a, const Place& p, const Own& o) const noexcept;
  void few(const Arguments& a, const Place& p, const Own& o) const noexcept;
  void few_rows(const Arguments& a, const Place& p, const Own& o) const noexcept;
  void few_split(const Arguments& a, int block, const Own& o) const noexcept;
  void join_split(const Arguments& a, const Own& o) const noexcept;
  void split(const Arguments& a, int block, const Own& o) const noexcept;
  /// c = or += a b over inner elements [from, to)
  void multiply(const Arguments& a, const Place& p, int64_t from, int64_t to, float* c, const Own& o) const noexcept;
  const float* turned_b(const float* b, int64_t from, int64_t count, const Own& o, int64_t& ld) const noexcept;

  bool fetched_ = false;  // Chunks of b are fetched into L2.
  bool copied_ = false;   // Chunks of b are copied into rows of whole vectors.
  int threads_ = 1;
  Path path_ = Path::kWide;
  Ending ending_ = Ending::kNone;
  const DenseKernels* tiny_ = nullptr;
  std::unique_ptr<ExpressionKernel> epilogue_;
  int direct_ = 0;  // The output that the product is made in, or -1 for scratch.

  int64_t tile_rows_ = 0, tile_cols_ = 0, chunk_ = 0;
  int row_tiles_ = 1, col_tiles_ = 1, tiles_ = 1, blocks_ = 1;
  Gemm products_[2][2][2][2];  // [last rows][last cols][last chunk][add]
  int phases_[2] = {1, 1};
  int phase_count_ = 1;
  int64_t partial_bytes_ = 0, shared_bytes_ = 0, tile_bytes_ = 0, turned_bytes_ = 0, sums_bytes_ = 0, own_bytes_ = 0;
};

/// Products in float64, bfloat16 and float16 (typed_matmul.cc). Returns null where there is no fast path.
std::unique_ptr<Kernel> typed_matmul(const ops::MatMul& op, const Request& request);

}  // namespace millpond::backend::cpu
