// ExpressionKernel: an ops::Expression made ready to run on tiles: the body of `fused`, and the epilogue of products and convolutions.
//
//    whole space rows x cols, cut into a grid of row_blocks x col_blocks; each block is run as one tile (or several, one below
//    the other, from `first` to `last`); a tile is run in chunks that keep all intermediate values in L1.
//
// Sums across blocks go through `shared` and are added in block order by finish(), a phase of its own; where a block sees all
// that a sum adds, the sum is complete when the block is and finish() is not needed.
// Memory: own_bytes() for each thread (intermediate values, at most 16 KiB as a rule), shared_bytes() once.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/expression_steps.h"
#include "backend/host/kernel.h"
#include "ops/expression.h"

namespace millpond::backend::cpu {

struct Grid {
  int64_t rows = 1, cols = 1;
  int row_blocks = 1, col_blocks = 1;
};

struct Tile {
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  int row_block = 0, col_block = 0;
  bool first = true, last = true;  // of its block
};

struct ExpressionCall {
  void* const* in = nullptr;  // in[r] is the operand of register r; of an epilogue in[0] is not read
  void* const* out = nullptr;
  std::byte* own = nullptr;     // of the calling thread, 64-byte aligned
  std::byte* shared = nullptr;  // 64-byte aligned
  // Register 0 of an epilogue at (tile.row, tile.col); with one column the rows must lie together (product_ld 1). It
  // may be the place of a stored result, and is then overwritten.
  const float* product = nullptr;
  int64_t product_ld = 0;
};

class ExpressionKernel {
 public:
  /// Null when a type has no fast path (then the whole kernel is the reference's). operands: one for each register of
  /// e.inputs; the type of register 0 of an epilogue is float32 and `epilogue` is true.
  static std::unique_ptr<ExpressionKernel> make(const ops::Expression& e, std::span<const TensorType> operands,
                                                std::span<const TensorType> results, Grid grid, bool epilogue);

  int64_t own_bytes() const { return own_bytes_; }
  int64_t shared_bytes() const { return shared_bytes_; }
  /// Sums are left for finish() after all tiles.
  bool unfinished() const { return unfinished_; }
  void tile(const ExpressionCall& call, const Tile& tile) const noexcept;
  void finish(const ExpressionCall& call) const noexcept;

  /// Only full and scalar operands, and no sums by row or column: rows and columns may be seen as one row.
  static bool flat(const ops::Expression& e);
  /// About how long an element takes, in nanoseconds.
  double cost() const { return cost_; }
  /// The output that a product may be put into before its tile is run: one that is stored as float32; -1: none.
  int product_output() const { return product_output_; }

 private:
  struct External {  // a register that lies outside: operand, product, output or partial sum
    enum class Kind : uint8_t { kInput, kProduct, kOutput, kOwn, kShared } kind;
    int16_t index = 0, ref = 0;
    int64_t row_bytes = 0, col_bytes = 0;  // from row to row and column to column
    int64_t rs = 0;
    int64_t offset = 0;                                // kOwn, kShared
    int64_t row_block_bytes = 0, col_block_bytes = 0;  // kShared
  };
  struct Sum {
    int16_t output, external;
    ops::Collect collect;
    float scale;
    bool direct;  // complete when its block is
  };
  struct Slot {
    int16_t ref, slot;
    Span span;
  };
  struct Constant {
    int16_t ref;
    float value;
  };
  struct Key {
    int16_t input;
    uint64_t salt;
  };
  friend class Preparation;

  Grid grid_;            // after turning
  bool turned_ = false;  // one column: rows are run as columns
  std::vector<Step> steps_;
  int preamble_ = 0;  // steps whose result does not vary: run once a tile
  std::vector<External> externals_;
  std::vector<Slot> slots_;
  std::vector<Constant> constants_;
  std::vector<Sum> sums_;
  std::vector<Key> keys_;
  std::vector<TinyOp> tiny_;  // the whole in threaded code, where it is at most a vector of elements
  void (*tiny_function_)(const TinyOp*, const TinyCall&) = nullptr;
  int refs_ = 0, slot_count_ = 0;
  int64_t slot_floats_ = 0, chunk_ = 0;  // a slot's size, a multiple of 16; elements run at a time
  int64_t own_bytes_ = 0, shared_bytes_ = 0;
  bool unfinished_ = false;
  double cost_ = 0;
  int product_output_ = -1;

  std::byte* base(const External& e, const ExpressionCall& call, const Tile& t) const;
};

}  // namespace millpond::backend::cpu
