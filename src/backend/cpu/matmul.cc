#include "backend/cpu/matmul.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/copy_kernels.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

using ops::Extent;
using ops::Function;

// So many inner elements are multiplied at a time: a panel of 128 columns then takes 192 KiB of L2. An inner dimension
// of up to kUncut is as fast uncut.
constexpr int64_t kChunk = 384, kUncut = 512;
// With few rows of a, and rows of b that the processor's prefetchers do not follow, most of the time goes into waiting
// for b. Products up to so many rows and with a b of at least so many floats therefore fetch b in advance.
constexpr int64_t kFetchedMostRows = 128, kFetchedLeastFloats = 1 << 15;
// Where a long inner dimension is cut into parts, a part is multiplied so many inner elements and columns at a time.
constexpr int64_t kCopiedChunk = 128, kCopiedCols = 640;
constexpr int64_t kParts = 8;      // A long inner dimension is cut into at most so many parts.
constexpr int64_t kFewGroup = 32;  // The sums of so many rows are kept while b is transposed chunk by chunk.

bool stores(const ops::Expression& e, int reg) {
  return e.results.size() == 1 && e.results[0].reg == reg && e.results[0].collect == ops::Collect::kStore;
}
bool is_bias(const ops::Expression& e) {
  return e.inputs.size() == 2 && e.inputs[1] == Extent::kRow && !e.code.empty() &&
         e.code[0].function == Function::k_add && e.code[0].a == 0 && e.code[0].b == 1 &&
         (e.code.size() == 1
              ? stores(e, 2)
              : e.code.size() == 2 && e.code[1].function == Function::k_relu && e.code[1].a == 2 && stores(e, 3));
}

}  // namespace

ProductSizes::ProductSizes(const ops::MatMul& op, const Request& request) {
  const Shape &x = request.inputs[0].shape, &y = request.inputs[1].shape;
  const Shape c = op.product(request.inputs[0], request.inputs[1]).shape;
  rows_ = c[-2], cols_ = c[-1], inner_ = x[op.transpose_a ? -2 : -1];
  transpose_a_ = op.transpose_a && rows_ != 1 && inner_ != 1;  // A vector looks the same transposed.
  transpose_b_ = op.transpose_b && cols_ != 1 && inner_ != 1;
  batch_rank_ = c.rank() - 2;
  int64_t steps[2] = {rows_ * inner_, inner_ * cols_};
  for (int i = batch_rank_ - 1; i >= 0; --i) {
    batches_ *= batch_dims_[i] = c[i];
    const Shape* shapes[] = {&x, &y};
    for (int k = 0; k < 2; ++k) {
      const int at = i - (c.rank() - shapes[k]->rank());
      const int64_t dim = at < 0 ? 1 : (*shapes[k])[at];
      batch_steps_[k][i] = dim == 1 ? 0 : steps[k];
      steps[k] *= dim;
    }
  }
  // All batches multiply the same b, so they are one product with more rows.
  if (batches_ > 1 && steps[1] == inner_ * cols_ && !transpose_a_ && steps[0] == batches_ * rows_ * inner_)
    rows_ *= batches_, batches_ = 1;
}

int64_t ProductSizes::offset(int64_t batch, int operand) const {
  if (batches_ == 1) return 0;
  int64_t at = 0;
  for (int i = batch_rank_ - 1; i >= 0; --i) {
    at += batch % batch_dims_[i] * batch_steps_[operand][i];
    batch /= batch_dims_[i];
  }
  return at;
}

void MatMulKernel::choose_path() {
  const double flops = 2.0 * double(batches_) * double(rows_) * double(cols_) * double(inner_);
  const int lanes = dense_kernels().lanes;
  tile_rows_ = rows_, tile_cols_ = cols_, chunk_ = inner_;
  int64_t wanted = 1;
  if (cols_ <= kNarrow && !transpose_a_ &&
      (cols_ == 1 || cols_ * rows_ * inner_ > 1024 || transpose_b_ || batches_ > 1)) {
    const double time = flops / 60 + 4.0 * double(inner_) * double(batches_ * rows_ + cols_) * 0.03;
    path_ = Path::kFew;
    if (batches_ == 1 && inner_ >= 16 * kNarrowChunk && rows_ <= 1024 && time > 50e3) {
      path_ = Path::kFewSplit;
      const int64_t wanted_chunks = std::clamp<int64_t>(int64_t(time / kBlockTime), 4, 64);
      chunk_ = round_up(ceil_div(inner_, wanted_chunks), kNarrowChunk);
      blocks_ = int(ceil_div(inner_, chunk_));
      return;
    }
    if (time > 12e3)
      tile_rows_ = even(
          rows_, std::max<int64_t>(16, ceil_div(rows_ * batches_, round_up(int64_t(time / kBlockTime) + 1, 4))), 16);
    wanted = time > 12e3 ? round_up(int64_t(time / kBlockTime) + 1, 4) : 1;
    if (cols_ == 1 && batches_ == 1 && flops < 100000) path_ = Path::kTiny;
  } else if (rows_ <= kNarrow && transpose_b_ && !transpose_a_) {
    path_ = Path::kFewRows;
    const double time = flops / 60 + 4.0 * double(inner_) * double(cols_ * batches_) * 0.03;
    tile_cols_ = even(cols_, 512, 16);
    if (time > 12e3)
      tile_cols_ =
          even(cols_, std::clamp<int64_t>(ceil_div(cols_, round_up(int64_t(time / kBlockTime) + 1, 4)), 64, 512), 16);
    wanted = time > 12e3 ? round_up(int64_t(time / kBlockTime) + 1, 4) : 1;
  } else if (batches_ == 1 && !transpose_a_ && !transpose_b_ && cols_ <= lanes && rows_ * cols_ * inner_ <= 2048) {
    path_ = Path::kTiny;
  } else {
    path_ = Path::kWide;
    const double time = flops / 100;
    wanted = time > 12e3 ? std::min<int64_t>(kMaxBlocks, round_up(int64_t(time / kBlockTime) + 1, 4)) : 1;
    const bool odd =
        !transpose_b_ && cols_ % 16 != 0 && rows_ <= kFetchedMostRows && inner_ * cols_ >= kFetchedLeastFloats;
    chunk_ = inner_ <= kUncut ? inner_ : even(inner_, kChunk, 16);
    tile_cols_ = even(cols_, odd || cols_ >= 1024 ? 128 : 64, 16);
    tile_rows_ = even(rows_, 256, 1);
    if (batches_ == 1 && wanted >= 4 && rows_ * cols_ <= 32768 && inner_ >= 16 * kCopiedChunk && inner_ >= 8 * cols_) {
      path_ = Path::kWideSplit;
      copied_ = odd;
      tile_rows_ = rows_, tile_cols_ = even(cols_, copied_ ? kCopiedCols : 64, 16);
      chunk_ = std::min(chunk_, kCopiedChunk);
      blocks_ = int(std::min<int64_t>(kParts, ceil_div(inner_, chunk_)));
      row_tiles_ = 1, col_tiles_ = int(ceil_div(cols_, tile_cols_)), tiles_ = col_tiles_;
      return;
    }
    fetched_ = odd;
    // More tiles balance the threads better; a panel must still serve enough rows.
    while (ceil_div(rows_, tile_rows_) * ceil_div(cols_, tile_cols_) * batches_ < wanted && tile_rows_ > 64)
      tile_rows_ = even(rows_, ceil_div(tile_rows_, 2), 1);
  }
  row_tiles_ = int(ceil_div(rows_, tile_rows_)), col_tiles_ = int(ceil_div(cols_, tile_cols_));
  tiles_ = int(batches_) * row_tiles_ * col_tiles_;
  blocks_ = int(std::min<int64_t>({wanted, tiles_, kMaxBlocks}));
}

Grid MatMulKernel::grid() const {
  if (path_ == Path::kFewSplit || path_ == Path::kWideSplit) return {rows_, cols_};
  return {batches_ * rows_, cols_, int(batches_) * row_tiles_, col_tiles_};
}

std::unique_ptr<Kernel> MatMulKernel::make(const ops::MatMul& op, const Request& request) {
  if (!all_float(std::span(request.inputs).first(2)) || request.inputs[0].shape.size() == 0 ||
      request.inputs[1].shape.size() == 0)
    return nullptr;
  auto k = std::make_unique<MatMulKernel>();
  static_cast<ProductSizes&>(*k) = ProductSizes(op, request);
  k->threads_ = request.threads;
  k->choose_path();
  bool unfinished = false;
  if (!op.epilogue.empty()) {
    if (k->path_ == Path::kTiny && is_bias(op.epilogue) && request.inputs[2].dtype == DType::kFloat32) {
      k->ending_ = op.epilogue.code.size() == 2 ? Ending::kBiasRelu : Ending::kBias;
    } else {
      k->epilogue_ =
          ExpressionKernel::make(op.epilogue, std::span(request.inputs).subspan(1), request.outputs, k->grid(), true);
      if (!k->epilogue_) return nullptr;
      k->direct_ = k->epilogue_->product_output();
      unfinished = k->epilogue_->unfinished();
    }
  } else if (!all_float(request.outputs)) {
    return nullptr;
  }

  const int lanes = dense_kernels().lanes;
  const int64_t tile = aligned(k->tile_rows_ * k->tile_cols_ * 4);
  switch (k->path_) {
    case Path::kTiny:
      // The loops are those of a vector that fits the columns, or the rows where there is only one column.
      k->tiny_ = &dense_kernels_for(k->cols_ > 1 ? k->cols_ : k->rows_ <= 8 && k->inner_ <= 8 ? 8 : 16);
      k->tile_bytes_ = k->direct_ < 0 ? tile : 0;
      break;
    case Path::kFew:
    case Path::kFewSplit:
      k->tile_bytes_ = k->direct_ < 0 || k->path_ == Path::kFewSplit ? tile : 0;
      if (k->cols_ > 1 && !k->transpose_b_)
        k->turned_bytes_ = aligned(k->cols_ * std::min(k->inner_, kNarrowChunk) * 4);
      if (k->path_ == Path::kFewSplit || k->inner_ > kNarrowChunk)
        k->sums_bytes_ = aligned(((k->path_ == Path::kFewSplit ? k->rows_ : kFewGroup) + 16) * k->cols_ * lanes * 4);
      if (k->path_ == Path::kFewSplit) k->partial_bytes_ = aligned(k->blocks_ * k->rows_ * k->cols_ * 4);
      break;
    case Path::kFewRows:
      k->tile_bytes_ = k->direct_ < 0 ? tile : 0;
      k->sums_bytes_ = tile;
      break;
    case Path::kWideSplit:
    case Path::kWide:
      if (k->path_ == Path::kWideSplit) k->partial_bytes_ = aligned(k->blocks_ * k->rows_ * k->cols_ * 4);
      if (k->direct_ < 0) k->tile_bytes_ = k->path_ == Path::kWideSplit ? aligned(k->rows_ * k->cols_ * 4) : tile;
      if (k->transpose_b_ || k->copied_) k->turned_bytes_ = aligned(round_up(k->tile_cols_, 16) * k->chunk_ * 4);
      if (!k->prepare_wide()) return nullptr;
      break;
  }
  k->phases_[0] = k->blocks_;
  if (unfinished || k->path_ == Path::kFewSplit || k->path_ == Path::kWideSplit) k->phase_count_ = 2;
  k->shared_bytes_ = k->partial_bytes_ + (k->epilogue_ ? aligned(k->epilogue_->shared_bytes()) : 0);
  k->own_bytes_ = k->tile_bytes_ + k->turned_bytes_ + k->sums_bytes_ + (k->epilogue_ ? k->epilogue_->own_bytes() : 0);
  return k;
}

bool MatMulKernel::prepare_wide() {
  const int64_t lda = transpose_a_ ? rows_ : inner_, ldb = transpose_b_ || copied_ ? round_up(tile_cols_, 16) : cols_;
  const int64_t ldc = path_ == Path::kWide && direct_ < 0 ? tile_cols_ : cols_;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int c = 0; c < 2; ++c)
        for (int add = 0; add < 2; ++add) {
          if (add && chunk_ == inner_) continue;
          const int64_t m = i ? last_part(rows_, tile_rows_) : tile_rows_,
                        n = j ? last_part(cols_, tile_cols_) : tile_cols_, k = c ? last_part(inner_, chunk_) : chunk_;
          products_[i][j][c][add] = Gemm({m, n, k, lda, ldb, ldc, bool(add), transpose_a_});
          if (!products_[i][j][c][add]) return false;
        }
  return true;
}

void MatMulKernel::generate() {
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int c = 0; c < 2; ++c)
        for (int add = 0; add < 2; ++add) products_[i][j][c][add].generate();
}

Bytes MatMulKernel::held() const {
  int64_t bytes = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int c = 0; c < 2; ++c)
        for (int add = 0; add < 2; ++add) bytes += products_[i][j][c][add].code_bytes();
  return Bytes{bytes};
}

MatMulKernel::Own MatMulKernel::own(const Arguments& a, int member) const {
  std::byte* p = a.scratch + shared_bytes_ + own_bytes_ * member;
  Own o;
  o.tile = reinterpret_cast<float*>(p);
  o.turned = reinterpret_cast<float*>(p += tile_bytes_);
  o.sums = reinterpret_cast<float*>(p += turned_bytes_);
  o.epilogue = p + sums_bytes_;
  return o;
}

// Tiles of the same columns have neighbouring numbers, so that a thread finds its columns of b in the cache.
MatMulKernel::Place MatMulKernel::place(int tile) const {
  Place p;
  const int per_batch = row_tiles_ * col_tiles_;
  p.batch = tile / per_batch;
  const int in_batch = tile % per_batch, r = in_batch % row_tiles_;
  p.col_block = in_batch / row_tiles_;
  p.row = r * tile_rows_, p.rows = std::min(tile_rows_, rows_ - p.row);
  p.col = p.col_block * tile_cols_, p.cols = std::min(tile_cols_, cols_ - p.col);
  p.row_block = int(p.batch) * row_tiles_ + r;
  return p;
}

float* MatMulKernel::product(const Arguments& a, const Place& p, const Own& o, int64_t& ld) const {
  if (direct_ < 0) {
    ld = path_ == Path::kWide ? tile_cols_ : p.cols;
    return o.tile;
  }
  ld = cols_;
  return a.output<float>(direct_) + (p.batch * rows_ + p.row) * cols_ + p.col;
}

void MatMulKernel::end(const Arguments& a, const Place& p, const float* made, int64_t ld, const Own& o) const noexcept {
  if (!epilogue_) return;
  epilogue_->tile({a.in + 1, a.out, o.epilogue, a.scratch + partial_bytes_, made, ld},
                  {p.batch * rows_ + p.row, p.rows, p.col, p.cols, p.row_block, p.col_block});
}

void MatMulKernel::run(const Arguments& a, int phase, int block, int member) const noexcept {
  if (path_ == Path::kTiny) {
    float* c = direct_ < 0 ? reinterpret_cast<float*>(a.scratch) : a.output<float>(direct_);
    const float* bias = ending_ == Ending::kNone ? nullptr : a.input<float>(2);
    if (cols_ == 1)
      tiny_->column_product[int(ending_)](a.input<float>(0), a.input<float>(1), c, rows_, inner_, bias);
    else
      tiny_->tiny_product[int(ending_)](a.input<float>(0), a.input<float>(1), c, rows_, inner_, cols_, bias);
    if (epilogue_) end(a, {0, 0, rows_, 0, cols_, 0, 0}, c, cols_, own(a, member));
    return;
  }
  const Own o = own(a, member);
  if (phase == 1) {
    if (path_ == Path::kFewSplit || path_ == Path::kWideSplit)
      join_split(a, o);
    else
      epilogue_->finish({a.in + 1, a.out, o.epilogue, a.scratch + partial_bytes_});
    return;
  }
  if (path_ == Path::kFewSplit) return few_split(a, block, o);
  if (path_ == Path::kWideSplit) return split(a, block, o);
  const int first = int(int64_t(tiles_) * block / blocks_), end_tile = int(int64_t(tiles_) * (block + 1) / blocks_);
  for (int t = first; t < end_tile; ++t) {
    const Place p = place(t);
    if (path_ == Path::kWide)
      wide(a, p, o);
    else if (path_ == Path::kFew)
      few(a, p, o);
    else
      few_rows(a, p, o);
  }
}

void MatMulKernel::multiply(const Arguments& a, const Place& p, int64_t from, int64_t to, float* c,
                            const Own& o) const noexcept {
  const float* x = a_of(a, p.batch) + (transpose_a_ ? p.row : p.row * inner_);
  const float* y = b_of(a, p.batch) + (transpose_b_ ? p.col * inner_ : p.col);
  const int64_t ld = round_up(tile_cols_, 16);
  const auto& products = products_[p.rows != tile_rows_][p.cols != tile_cols_];
  for (int64_t k = from; k < to; k += chunk_) {
    const int64_t count = std::min(chunk_, to - k);
    const float* part = y + (transpose_b_ ? k : k * cols_);
    if (transpose_b_) dense_kernels().turn(part, inner_, o.turned, ld, p.cols, count);
    if (fetched_)
      for (int64_t r = 0; r < count; ++r) dense_kernels().fetch(part + r * cols_, p.cols + 15);
    if (copied_)
      copy_kernels().copy(reinterpret_cast<const std::byte*>(part), cols_ * 4, reinterpret_cast<std::byte*>(o.turned),
                          ld * 4, count, p.cols * 4, false);
    products[count != chunk_][k > from](x + (transpose_a_ ? k * rows_ : k), transpose_b_ || copied_ ? o.turned : part,
                                        c);
  }
}

void MatMulKernel::wide(const Arguments& a, const Place& p, const Own& o) const noexcept {
  int64_t ld;
  float* c = product(a, p, o, ld);
  multiply(a, p, 0, inner_, c, o);
  end(a, p, c, ld, o);
}

// Computes the share of one block: its chunks of the inner dimension, for all columns.
void MatMulKernel::split(const Arguments& a, int block, const Own& o) const noexcept {
  const int64_t chunks = ceil_div(inner_, chunk_), from = chunks * block / blocks_ * chunk_,
                to = std::min(inner_, chunks * (block + 1) / blocks_ * chunk_);
  float* c = reinterpret_cast<float*>(a.scratch) + block * rows_ * cols_;
  for (int t = 0; t < tiles_; ++t) {
    const Place p = place(t);
    multiply(a, p, from, to, c + p.col, o);
  }
}

// The columns of b as rows, for the inner elements [from, from + count). Where b is stored like that already, this is b
// itself; otherwise they are transposed into scratch. `ld` is set to the distance between two rows.
const float* MatMulKernel::turned_b(const float* b, int64_t from, int64_t count, const Own& o,
                                    int64_t& ld) const noexcept {
  if (transpose_b_ || cols_ == 1) {
    ld = inner_;
    return b + from;
  }
  ld = std::min(inner_, kNarrowChunk);
  dense_kernels().narrow_turn[cols_](b + from * cols_, count, o.turned, ld);
  return o.turned;
}

void MatMulKernel::few(const Arguments& a, const Place& p, const Own& o) const noexcept {
  const DenseKernels& d = dense_kernels();
  const float *x = a_of(a, p.batch) + p.row * inner_, *y = b_of(a, p.batch);
  int64_t ld, ldb;
  float* c = product(a, p, o, ld);
  if (inner_ <= kNarrowChunk) {
    const float* bt = turned_b(y, 0, inner_, o, ldb);
    d.narrow_product[cols_](x, inner_, bt, ldb, p.rows, inner_, c);
  } else {
    for (int64_t r = 0; r < p.rows; r += kFewGroup) {
      const int64_t rows = std::min(kFewGroup, p.rows - r);
      for (int64_t k = 0; k < inner_; k += kNarrowChunk) {
        const int64_t count = std::min(kNarrowChunk, inner_ - k);
        const float* bt = turned_b(y, k, count, o, ldb);
        d.narrow_partial[cols_](x + r * inner_ + k, inner_, bt, ldb, rows, count, o.sums, k == 0, false);
      }
      d.narrow_reduce(o.sums, rows * cols_, c + r * cols_);
    }
  }
  end(a, p, c, ld, o);
}

// Multiplies the rows of b by the rows of a, which gives the transpose of c, and transposes that.
void MatMulKernel::few_rows(const Arguments& a, const Place& p, const Own& o) const noexcept {
  const DenseKernels& d = dense_kernels();
  int64_t ld;
  float* c = product(a, p, o, ld);
  d.narrow_product[rows_](b_of(a, p.batch) + p.col * inner_, inner_, a_of(a, p.batch), inner_, p.cols, inner_, o.sums);
  d.turn(o.sums, rows_, c, ld, p.cols, rows_);
  end(a, p, c, ld, o);
}

void MatMulKernel::few_split(const Arguments& a, int block, const Own& o) const noexcept {
  const DenseKernels& d = dense_kernels();
  const int64_t from = block * chunk_, to = std::min(inner_, from + chunk_);
  for (int64_t k = from; k < to; k += kNarrowChunk) {
    const int64_t count = std::min(kNarrowChunk, to - k);
    int64_t ldb;
    const float* bt = turned_b(a.input<float>(1), k, count, o, ldb);
    d.narrow_partial[cols_](a.input<float>(0) + k, inner_, bt, ldb, rows_, count, o.sums, k == from, true);
  }
  d.narrow_reduce(o.sums, rows_ * cols_, reinterpret_cast<float*>(a.scratch) + block * rows_ * cols_);
}

void MatMulKernel::join_split(const Arguments& a, const Own& o) const noexcept {
  float* c = direct_ < 0 ? o.tile : a.output<float>(direct_);
  expression_steps().combine(c, reinterpret_cast<const float*>(a.scratch), rows_ * cols_, blocks_, 1);
  end(a, {0, 0, rows_, 0, cols_, 0, 0}, c, cols_, o);
}

std::unique_ptr<Kernel> matmul(const ops::MatMul& op, const Request& request) {
  std::unique_ptr<Kernel> k =
      all_float(std::span(request.inputs).first(2)) ? MatMulKernel::make(op, request) : typed_matmul(op, request);
  return k ? std::move(k) : slow(op, request);
}

}  // namespace millpond::backend::cpu
