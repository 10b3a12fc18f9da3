// Products in float64, bfloat16 and float16, in tiles of rows x columns. What is summed up in one is
//   float64    double, by products of doubles
//   bfloat16   float, by the processor's products of pairs of bfloat16 where it has them; otherwise as float16
//   float16    float, by products of floats
// Operands that lie as a product wants them are read in place, all others are laid together a chunk at a time.
#include "backend/cpu/lanes.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/typed_rows.h"
#include "backend/cpu/typed_steps.h"

namespace millpond::backend::cpu {
namespace {

class TypedMatMul final : public Kernel, private ProductSizes {
 public:
  TypedMatMul(const ops::MatMul& op, const Request& request)
      : ProductSizes(op, request),
        type_(request.inputs[0].dtype),
        element_(size_of(type_).value),
        threads_(request.threads) {
    using Numbers = Gemm::Numbers;
    numbers_ = type_ == DType::kFloat64                            ? Numbers::kDouble
               : type_ == DType::kBFloat16 && Gemm::has_bfloat16() ? Numbers::kBFloat16
                                                                   : Numbers::kFloat;
    lane_ = numbers_ == Numbers::kDouble ? 8 : numbers_ == Numbers::kFloat ? 4 : 2;
    chunk_ = even(inner_, numbers_ == Numbers::kBFloat16 ? 512 : 256, 16);
    tile_cols_ = even(cols_, numbers_ == Numbers::kDouble ? 64 : 128, 16);
    tile_rows_ = even(rows_, 128, 1);
    const double flops = 2.0 * double(batches_) * double(rows_) * double(cols_) * double(inner_);
    const double time = flops / (numbers_ == Numbers::kDouble ? 50 : 80);
    const int64_t wanted = time > 12e3 ? std::min<int64_t>(kMaxBlocks, int64_t(time / kBlockTime) + 1) : 1;
    while (tiles() < wanted && tile_rows_ > 16) tile_rows_ = even(rows_, ceil_div(tile_rows_, 2), 1);
    while (tiles() < wanted && tile_cols_ > 32) tile_cols_ = even(cols_, ceil_div(tile_cols_, 2), 16);
    blocks_[0] = int(std::min<int64_t>({wanted, tiles(), kMaxBlocks}));

    // a row of a is a row of its product where it is not transposed and no odd element is left over
    a_in_place_ = element_ == lane_ && !transpose_a_ && (lane_ != 2 || inner_ % 2 == 0);
    b_in_place_ = lane_ == 8 && !transpose_b_;
    c_in_place_ = lane_ == 8;
    const int64_t most = round_up(chunk_, 2);
    a_bytes_ = a_in_place_ ? 0 : aligned(tile_rows_ * most * lane_);
    b_bytes_ = b_in_place_ ? 0 : aligned(tile_cols_ * most * lane_);
    c_bytes_ = c_in_place_ ? 0 : aligned(tile_rows_ * tile_cols_ * 4);
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int l = 0; l < 2; ++l)
          for (int add = 0; add < 2; ++add) {
            if (add && chunk_ == inner_) continue;
            const int64_t m = i ? last_part(rows_, tile_rows_) : tile_rows_,
                          n = j ? last_part(cols_, tile_cols_) : tile_cols_;
            int64_t k = l ? last_part(inner_, chunk_) : chunk_;
            if (lane_ == 2) k = round_up(k, 2);
            products_[i][j][l][add] = Gemm({m, n, k, a_in_place_ ? inner_ : k, b_in_place_ ? cols_ : n,
                                            c_in_place_ ? cols_ : tile_cols_, add != 0, false, numbers_});
          }
  }
  std::span<const int> phases() const override { return blocks_; }
  Bytes workspace() const override { return Bytes{(a_bytes_ + b_bytes_ + c_bytes_) * members(blocks_, threads_)}; }
  void generate() override {
    each([](Gemm& g) { g.generate(); });
  }
  Bytes held() const override {
    int64_t n = 0;
    const_cast<TypedMatMul*>(this)->each([&](Gemm& g) { n += g.code_bytes(); });
    return Bytes{n};
  }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    std::byte* const own = a.scratch + (a_bytes_ + b_bytes_ + c_bytes_) * member;
    const int64_t all = tiles();
    for (int64_t t = all * block / blocks_[0]; t < all * (block + 1) / blocks_[0]; ++t) tile(a, t, own);
  }

 private:
  int64_t row_tiles() const { return ceil_div(rows_, tile_rows_); }
  int64_t col_tiles() const { return ceil_div(cols_, tile_cols_); }
  int64_t tiles() const { return batches_ * row_tiles() * col_tiles(); }
  template <class F>
  void each(F f) {
    for (auto& i : products_)
      for (auto& j : i)
        for (auto& l : j)
          for (Gemm& g : l) f(g);
  }

  void tile(const Arguments& a, int64_t t, std::byte* own) const noexcept {
    const int64_t j = t % col_tiles(), i = t / col_tiles() % row_tiles(), batch = t / col_tiles() / row_tiles();
    const int64_t row = i * tile_rows_, col = j * tile_cols_;
    const int64_t m = std::min(tile_rows_, rows_ - row), n = std::min(tile_cols_, cols_ - col);
    const std::byte* const x = a.input<std::byte>(0) + offset(batch, 0) * element_;
    const std::byte* const y = a.input<std::byte>(1) + offset(batch, 1) * element_;
    std::byte* const out = a.output<std::byte>(0) + ((batch * rows_ + row) * cols_ + col) * element_;
    std::byte* const c = c_in_place_ ? out : own + a_bytes_ + b_bytes_;
    const int64_t a_row = transpose_a_ ? 1 : inner_, a_col = transpose_a_ ? rows_ : 1;
    const int64_t b_row = transpose_b_ ? 1 : cols_, b_col = transpose_b_ ? inner_ : 1;
    const TypedRows& rows = typed_rows();
    for (int64_t k = 0; k < inner_; k += chunk_) {
      const int64_t count = std::min(chunk_, inner_ - k);
      const std::byte* ap = x + (row * a_row + k * a_col) * element_;
      const std::byte* bp = y + (k * b_row + col * b_col) * element_;
      if (!a_in_place_) {
        if (lane_ == 2)
          rows.pack_rows(reinterpret_cast<const uint16_t*>(ap), a_row, a_col, m, count,
                         reinterpret_cast<uint16_t*>(own));
        else
          rows.pack(as_stored(type_))(ap, a_row, a_col, m, count, own);
        ap = own;
      }
      if (!b_in_place_) {
        std::byte* const to = own + a_bytes_;
        if (lane_ == 2)
          rows.pack_pairs(reinterpret_cast<const uint16_t*>(bp), b_row, b_col, count, n,
                          reinterpret_cast<uint16_t*>(to));
        else
          rows.pack(as_stored(type_))(bp, b_row, b_col, count, n, to);
        bp = to;
      }
      products_[row + m == rows_][col + n == cols_][k + count == inner_][k > 0].run(ap, bp, c);
    }
    if (c_in_place_) return;
    const Step step{nullptr, 1, 0, 0, 0, Span::kFull, 0, 0, 0};
    const Ref refs[] = {{c, tile_cols_}, {out, cols_}};
    Chunk chunk{};
    chunk.rows[0] = m, chunk.cols[0] = n;
    typed_steps().store(as_stored(type_))(step, refs, chunk);
  }

  DType type_;
  int64_t element_, lane_;  // bytes in memory and in a product
  int threads_;
  Gemm::Numbers numbers_;
  int64_t tile_rows_ = 0, tile_cols_ = 0, chunk_ = 0;
  bool a_in_place_, b_in_place_, c_in_place_;
  int64_t a_bytes_, b_bytes_, c_bytes_;
  Gemm products_[2][2][2][2];  // [last rows][last cols][last chunk][add]
  int blocks_[1] = {1};
};

}  // namespace

std::unique_ptr<Kernel> typed_matmul(const ops::MatMul& op, const Request& request) {
  if (!op.epilogue.empty() || request.inputs[0].shape.size() == 0 || request.inputs[1].shape.size() == 0)
    return nullptr;
  return std::make_unique<TypedMatMul>(op, request);
}

}  // namespace millpond::backend::cpu
