#include "ops/attention.h"

#include "backend/cpu/attention.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

// A unit of work is one tile of queries, the later ones first: with a mask these see the most keys. For each tile of
// keys
//   scores = K (scale Q)^T, softened relative to the largest so far, out = out * factor + scores^T V.
// Scratch of a thread: (scale Q)^T, scores, out, and largest, sum, factor of each query.
class Attention final : public Kernel {
 public:
  Attention(const AttentionGrid& g, float scale, int threads)
      : g_(g),
        scale_(scale),
        threads_(threads),
        runs_(g.heads * g.tiles, 2.3 * g.head_time() / double(g.tiles) + 200),
        blocks_{runs_.blocks} {
    const int64_t keys[2] = {g.keys, g.last_keys};
    for (int k = 0; k < 2; ++k) {
      score_[k] =
          Gemm({.m = keys[k], .n = g.queries, .k = g.width, .lda = g.width, .ldb = g.queries, .ldc = g.queries});
      for (int add = 0; add < 2; ++add)
        mix_[k][add] = Gemm({.m = g.queries,
                             .n = g.width,
                             .k = keys[k],
                             .lda = g.queries,
                             .ldb = g.width,
                             .ldc = g.width,
                             .add = add == 1,
                             .trans_a = true});
    }
  }
  /// There is a kernel for every product.
  bool complete() const {
    bool all = true;
    for (int k = 0; k < 2; ++k) all &= score_[k] && mix_[k][0] && mix_[k][1];
    return all;
  }
  void generate() override {
    for (int k = 0; k < 2; ++k) {
      score_[k].generate();
      for (int add = 0; add < 2; ++add) mix_[k][add].generate();
    }
  }
  Bytes held() const override {
    int64_t bytes = 0;
    for (int k = 0; k < 2; ++k) bytes += score_[k].code_bytes() + mix_[k][0].code_bytes() + mix_[k][1].code_bytes();
    return Bytes{bytes};
  }
  std::span<const int> phases() const override { return blocks_; }
  Bytes workspace() const override { return Bytes{threads_ * own()}; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    for (int64_t u = runs_.begin(block); u < runs_.end(block); ++u)
      tile(a, u / g_.tiles, g_.tiles - 1 - u % g_.tiles, reinterpret_cast<float*>(a.scratch + member * own()));
  }

 private:
  int64_t own() const { return aligned((2 * g_.queries * g_.width + g_.keys * g_.queries + 3 * g_.queries) * 4); }
  void tile(const Arguments& a, int64_t head, int64_t t, float* scratch) const {
    const int64_t base = head * g_.length, first = t * g_.queries, rows = g_.queries_of(t), d = g_.width,
                  seen = g_.seen(t);
    float *const q = scratch, *const out = q + g_.queries * d, *const scores = out + g_.queries * d,
                 *const largest = scores + g_.keys * g_.queries, *const sum = largest + g_.queries,
                 *const factor = sum + g_.queries;
    k_.turn(a.input<float>(0) + (base + first) * d, rows, d, scale_, g_.queries, q);
    for (int64_t i = 0; i < g_.queries; ++i) largest[i] = -3.40282347e+38f, sum[i] = 0;
    for (int64_t j = 0; j < seen; ++j) {
      const int64_t row = (base + j * g_.keys) * d;
      const bool last = j == g_.key_tiles() - 1;
      score_[last](a.input<float>(1) + row, q, scores);
      if (k_.soften(scores, g_.scores(t, j), largest, sum, factor) && j > 0) k_.scale_rows(out, rows, d, factor);
      mix_[last][j > 0](scores, a.input<float>(2) + row, out);
    }
    k_.finish(out, rows, d, largest, sum, a.output<float>(0) + (base + first) * d, a.output<float>(1) + base + first);
  }

  AttentionGrid g_;
  float scale_;
  int64_t threads_;
  Runs runs_;
  int blocks_[1];
  Gemm score_[2], mix_[2][2];  // [last tile of keys], [adds]
  const AttentionKernels& k_ = attention_kernels();
};

}  // namespace

std::unique_ptr<Kernel> attention(const ops::Attention& op, const Request& request) {
  if (!all_float(request.inputs) || request.inputs[0].shape.size() == 0) return slow(op, request);
  auto kernel =
      std::make_unique<Attention>(AttentionGrid(request.inputs[0].shape, op.causal), float(op.scale), request.threads);
  if (!kernel->complete()) return slow(op, request);
  return kernel;
}

}  // namespace millpond::backend::cpu
