#include "backend/cpu/dense.h"

#include <algorithm>

#include "backend/cpu/slow.h"
#include "ops/dense_backward.h"
#include "ops/dense_update.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kTileFloats = 32768;       // of gradient: 128 KiB of L2
constexpr int64_t kFetchedFloats = 1 << 18;  // weights that L2 does not hold
constexpr int64_t kProductChunk = 384;       // inner elements of a product at a time
constexpr int64_t kBatch = 128;              // rows of dx^T's columns at a time

bool is_gate(const ops::Expression& e) {
  return e.inputs.size() == 2 && e.inputs[1] == ops::Extent::kFull && e.code.size() == 1 &&
         e.code[0].function == ops::Function::k_gate && e.code[0].a == 0 && e.code[0].b == 1 && e.results.size() == 1 &&
         e.results[0].reg == 2 && e.results[0].collect == ops::Collect::kStore;
}

// The weights of a narrow layer are run through as one row, those of a wide one in panels of their rows.
PreparedRule prepare(const ops::Rule& rule, const Request& request) {
  const int64_t in = request.inputs[0].shape[1], out = request.inputs[1].shape[1];
  return out <= kNarrow ? PreparedRule(rule, 1, in * out) : PreparedRule(rule, in, out);
}

}  // namespace

DenseKernel::DenseKernel(const ops::Rule& rule, bool bias, bool dx, const Request& request)
    : rule_(prepare(rule, request)),
      bias_(bias),
      dx_(dx),
      rows_(request.inputs[0].shape[0]),
      in_(request.inputs[0].shape[1]),
      out_(request.inputs[1].shape[1]),
      threads_(request.threads) {
  state_ = (1 + rule_.slots()) * (bias ? 2 : 1);
  fixed_inputs_ = 3 + state_;
  const double flops = 2.0 * double(rows_) * double(in_) * double(out_) * (dx ? 2 : 1),
               weights = double(in_) * double(out_);
  const std::optional<Written>& written = rule_.by_hand();
  if (written && out_ == 1 && flops < 200000) {
    path_ = Path::kSmall;
    pieces_ = Pieces(in_, in_, 1, 0);
    small_backward_ = dense_kernels_for(in_).small_backward(written->kind, written->nesterov, written->decay);
  } else if (written && !dx && out_ > 1 && (flops < 4096 || (flops < 40000 && out_ > kNarrow))) {
    path_ = Path::kSmall;
    small_update_ = dense_kernels_for(out_).small_update(written->kind, written->nesterov, written->decay);
  } else if (out_ <= kNarrow) {
    path_ = Path::kFew;
    const double bytes = double(rows_) * double(in_) * (dx ? 8 : 4) + weights * 24;
    pieces_ = Pieces(in_, kFeatureChunk, 16, flops / 60 + weights * 0.2 + bytes * 0.03);
  } else {
    path_ = Path::kWide;
    // Whole rows of the weights, so that weights and slots are one stream each: in panels of columns the rule runs at a
    // third of its speed where they come from memory.
    const int64_t most =
        std::clamp<int64_t>(kTileFloats / out_, 8, dx ? std::clamp<int64_t>(16384 / rows_, 16, 48) : 64);
    pieces_ = Pieces(in_, most, dx && in_ % 16 == 0 && in_ >= 128 ? 16 : 1, flops / 100 + weights * 0.3);
  }
}

std::unique_ptr<Kernel> DenseKernel::make(const ops::Rule& rule, bool bias, const ops::Expression* epilogue,
                                          const Request& request) {
  if (request.inputs[0].shape.size() == 0 || request.inputs[1].shape.size() == 0) return nullptr;  // nothing to gain
  std::unique_ptr<DenseKernel> k(new DenseKernel(rule, bias, epilogue != nullptr, request));
  if (k->rule_.missing()) return nullptr;
  if (!all_float(std::span(request.inputs).first(size_t(k->fixed_inputs_)))) return nullptr;
  if (!all_float(std::span(request.outputs).first(size_t(k->state_)))) return nullptr;
  bool unfinished = false;
  if (epilogue && !epilogue->empty()) {
    if (k->path_ != Path::kWide && is_gate(*epilogue)) {
      k->gate_ = k->fixed_inputs_;
      if (request.inputs[size_t(k->gate_)].dtype != DType::kFloat32) return nullptr;
    } else {
      // register 0 first: the type of dx
      std::vector<TensorType> operands{request.inputs[0]};
      operands.insert(operands.end(), request.inputs.begin() + k->fixed_inputs_, request.inputs.end());
      k->epilogue_ = ExpressionKernel::make(*epilogue, operands, std::span(request.outputs).subspan(size_t(k->state_)),
                                            {k->rows_, k->in_, 1, k->pieces_.pieces}, true);
      if (!k->epilogue_) return nullptr;
      unfinished = k->epilogue_->unfinished();
    }
  }
  if (epilogue && k->state_ < int(request.outputs.size()) && !k->epilogue_ &&
      !all_float(std::span(request.outputs).subspan(size_t(k->state_))))
    return nullptr;

  k->phase_count_ = 0;
  if (k->path_ == Path::kWide) {
    k->prepare_wide();
    for (const Products& p : k->products_)
      if (!p.gradient[0][0][0]) return nullptr;
    if (epilogue) k->phases_[k->phase_count_] = k->turns_.blocks, k->tasks_[k->phase_count_++] = Task::kTurn;
  } else if (k->path_ == Path::kFew) {
    k->gradient_bytes_ = aligned(narrow_backward_floats(k->out_) * 4);
    if (k->epilogue_) k->tile_bytes_ = aligned(k->rows_ * kFeatureChunk * 4);
  } else if (k->epilogue_) {
    k->tile_bytes_ = aligned(k->rows_ * k->in_ * 4);
  }
  k->phases_[k->phase_count_] = k->pieces_.blocks, k->tasks_[k->phase_count_++] = Task::kMain;
  if (unfinished) k->phases_[k->phase_count_] = 1, k->tasks_[k->phase_count_++] = Task::kFinish;
  if (k->path_ != Path::kSmall) k->gradient_bytes_ = std::max(k->gradient_bytes_, aligned(k->out_ * 4));  // of the bias
  k->shared_bytes_ = k->turned_bytes_ + (k->epilogue_ ? aligned(k->epilogue_->shared_bytes()) : 0);
  k->rule_bytes_ = aligned(k->rule_.own_bytes());
  k->own_bytes_ = k->gradient_bytes_ + k->dx_bytes_ + k->tile_bytes_ + k->rule_bytes_ +
                  (k->epilogue_ ? k->epilogue_->own_bytes() : 0);
  return k;
}

void DenseKernel::prepare_wide() {
  panel_ = even(out_, std::max<int64_t>(64, kTileFloats / pieces_.size), 16);
  row_chunk_ = even(rows_, kProductChunk, 1);
  out_chunk_ = even(out_, kProductChunk, 16);
  batch_ = even(rows_, kBatch, 16);
  gradient_bytes_ = aligned(pieces_.size * panel_ * 4);
  if (dx_) {
    turned_bytes_ = aligned(out_ * rows_ * 4);
    dx_bytes_ = aligned(pieces_.size * rows_ * 4);
    if (epilogue_) tile_bytes_ = dx_bytes_;
    // a few microseconds, but everyone waits for it
    const bool shared = double(rows_) * double(out_) > 32768;
    turns_ = Runs(out_, shared ? 4 * kBlockTime / double(out_) : 0, 16);
  }
  for (int p = 0; p < 2; ++p) {
    const int64_t features = p ? last_part(in_, pieces_.size) : pieces_.size;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int add = 0; add < 2; ++add) {
          // only the sizes that occur
          const int64_t panel = i ? last_part(out_, panel_) : panel_,
                        rows = j ? last_part(rows_, row_chunk_) : row_chunk_;
          if (!(add && rows_ == row_chunk_))
            products_[p].gradient[i][j][add] = Gemm({features, panel, rows, in_, out_, panel_, bool(add), true});
          if (!dx_) continue;
          const int64_t batch = i ? last_part(rows_, batch_) : batch_,
                        inner = j ? last_part(out_, out_chunk_) : out_chunk_;
          if (!(add && out_ == out_chunk_))
            products_[p].input[i][j][add] = Gemm({features, batch, inner, out_, rows_, rows_, bool(add), false});
        }
  }
}

void DenseKernel::generate() {
  for (Products& p : products_)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int add = 0; add < 2; ++add) p.gradient[i][j][add].generate(), p.input[i][j][add].generate();
}

Bytes DenseKernel::held() const {
  int64_t bytes = 0;
  for (const Products& p : products_)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int add = 0; add < 2; ++add) bytes += p.gradient[i][j][add].code_bytes() + p.input[i][j][add].code_bytes();
  return Bytes{bytes};
}

DenseKernel::Own DenseKernel::own(const Arguments& a, int member) const {
  std::byte* p = a.scratch + shared_bytes_ + own_bytes_ * member;
  Own o;
  o.gradient = reinterpret_cast<float*>(p);
  o.dx = reinterpret_cast<float*>(p + gradient_bytes_);
  o.tile = reinterpret_cast<float*>(p + gradient_bytes_ + dx_bytes_);
  o.rule = p + gradient_bytes_ + dx_bytes_ + tile_bytes_;
  o.epilogue = o.rule + rule_bytes_;
  return o;
}

void DenseKernel::run(const Arguments& a, int phase, int block, int member) const noexcept {
  if (path_ == Path::kSmall && phase == 0) return small(a, member);
  const Own o = own(a, member);
  switch (tasks_[phase]) {
    case Task::kTurn: {
      const int64_t from = turns_.begin(block);
      dense_kernels().turn(a.input<float>(1) + from, out_, reinterpret_cast<float*>(a.scratch) + from * rows_, rows_,
                           rows_, turns_.end(block) - from);
      return;
    }
    case Task::kFinish:
      return epilogue_->finish(call(a, o.epilogue));
    case Task::kMain:
      break;
  }
  for (int piece = pieces_.first(block); piece < pieces_.first(block + 1); ++piece)
    path_ == Path::kFew ? narrow(a, piece, o) : wide(a, piece, o);
  if (bias_) update_bias(a, block, o);
}

void DenseKernel::small(const Arguments& a, int member) const noexcept {
  const Parameter kernel(a, rule_.slots(), 3, 0, 0, in_ * out_);
  std::optional<Parameter> bias;
  if (bias_) bias.emplace(a, rule_.slots(), 4 + rule_.slots(), 1 + rule_.slots(), 0, out_);
  const RuleStep step = rule_.step(a.input<float>(2), nullptr);  // written out: needs no scratch
  if (small_update_)
    return small_update_(step, a.input<float>(0), a.input<float>(1), rows_, in_, out_, kernel.p,
                         bias_ ? bias->p : nullptr);
  float* dx = nullptr;
  if (dx_) dx = epilogue_ ? own(a, member).tile : a.output<float>(state_);
  small_backward_(step, a.input<float>(0), a.input<float>(1), rows_, in_, kernel.p, bias_ ? bias->p : nullptr, dx,
                  gate_ < 0 ? nullptr : a.input<float>(gate_));
  if (epilogue_) end_tile(a, 0, dx, in_, own(a, member));
}

// Every block takes its share of the columns.
void DenseKernel::update_bias(const Arguments& a, int block, const Own& o) const noexcept {
  const int64_t units = ceil_div(out_, 16), from = units * block / pieces_.blocks * 16,
                to = std::min(out_, units * (block + 1) / pieces_.blocks * 16);
  if (from >= to) return;
  dense_kernels().column_sums(a.input<float>(1) + from, out_, rows_, to - from, o.gradient);
  const Parameter p(a, rule_.slots(), 4 + rule_.slots(), 1 + rule_.slots(), from, to);
  rule_.pass(rule_.step(a.input<float>(2), o.rule), o.gradient, to - from, p.p, 0, to - from, 1, to - from);
}

void DenseKernel::end_tile(const Arguments& a, int piece, const float* tile, int64_t ld, const Own& o) const noexcept {
  ExpressionCall c = call(a, o.epilogue);
  c.product = tile;
  c.product_ld = ld;
  const int64_t from = pieces_.begin(piece);
  epilogue_->tile(c, {0, rows_, from, pieces_.end(piece) - from, 0, piece});
}

void DenseKernel::narrow(const Arguments& a, int piece, const Own& o) const noexcept {
  const int64_t from = pieces_.begin(piece), to = pieces_.end(piece);
  const Parameter p(a, rule_.slots(), 3, 0, from * out_, to * out_);
  NarrowBackward n{};
  n.x = a.input<float>(0) + from;
  n.ldx = in_;
  n.dz = a.input<float>(1);
  n.rows = rows_;
  n.features = to - from;
  n.parameter = p.p, n.slots = rule_.slots();
  n.pass = rule_.pass;
  n.step = rule_.step(a.input<float>(2), o.rule);
  n.scratch = o.gradient;
  n.ahead = rows_ * in_ > (1 << 18);
  if (dx_) {
    n.dx = epilogue_ ? o.tile : a.output<float>(state_) + from;
    n.lddx = epilogue_ ? to - from : in_;
    if (gate_ >= 0) n.gate = a.input<float>(gate_) + from;
  }
  dense_kernels().narrow_backward[out_](n);
  if (epilogue_) end_tile(a, piece, o.tile, to - from, o);
}

void DenseKernel::wide(const Arguments& a, int piece, const Own& o) const noexcept {
  const int64_t from = pieces_.begin(piece), features = pieces_.end(piece) - from;
  const Products& products = products_[features != pieces_.size];
  const float *x = a.input<float>(0) + from, *dz = a.input<float>(1);
  const Parameter p(a, rule_.slots(), 3, 0, from * out_, (from + features) * out_);
  if (dx_) {
    const float* turned = reinterpret_cast<const float*>(a.scratch);
    // the product reads many rows at once, which no processor foresees
    if (in_ * out_ >= kFetchedFloats) dense_kernels().fetch(p.p[0], features * out_);
    for (int64_t r = 0; r < rows_; r += batch_)
      for (int64_t c = 0; c < out_; c += out_chunk_)
        products.input[r + batch_ > rows_][c + out_chunk_ > out_][c > 0](p.p[0] + c, turned + c * rows_ + r, o.dx + r);
  }
  const RuleStep step = rule_.step(a.input<float>(2), o.rule);
  for (int64_t c = 0; c < out_; c += panel_) {
    const int64_t cols = std::min(panel_, out_ - c);
    for (int64_t r = 0; r < rows_; r += row_chunk_)
      products.gradient[cols != panel_][r + row_chunk_ > rows_][r > 0](x + r * in_, dz + r * out_ + c, o.gradient);
    rule_.pass(step, o.gradient, panel_, p.p, c, out_, features, cols);
  }
  if (!dx_) return;
  float* to = epilogue_ ? o.tile : a.output<float>(state_) + from;
  const int64_t ld = epilogue_ ? features : in_;
  dense_kernels().turn(o.dx, rows_, to, ld, features, rows_);
  if (epilogue_) end_tile(a, piece, o.tile, ld, o);
}

std::unique_ptr<Kernel> dense_update(const ops::DenseUpdate& op, const Request& request) {
  std::unique_ptr<Kernel> k = DenseKernel::make(op.rule, op.bias, nullptr, request);
  return k ? std::move(k) : slow(op, request);
}

std::unique_ptr<Kernel> dense_backward(const ops::DenseBackward& op, const Request& request) {
  std::unique_ptr<Kernel> k = DenseKernel::make(op.rule, op.bias, &op.epilogue, request);
  return k ? std::move(k) : slow(op, request);
}

}  // namespace millpond::backend::cpu
