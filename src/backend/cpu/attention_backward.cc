#include "ops/attention_backward.h"

#include "backend/cpu/attention.h"
#include "backend/cpu/slow.h"

namespace millpond::backend::cpu {
namespace {

// A unit of work is one head. For each tile of queries and of keys, with p and ds stored as [keys][queries]:
//   p = exp(K (scale Q)^T - lse), dp = V dO^T, ds = p (dp - dO . O) scale, dV += p dO, dK += ds Q, dQ += ds^T K.
// Scratch of a thread: (scale Q)^T, dO^T, p, ds, and lse and dO . O of each query.
class AttentionBackward final : public Kernel {
 public:
  AttentionBackward(const AttentionGrid& g, float scale, int threads)
      : g_(g), scale_(scale), threads_(threads), runs_(g.heads, 6 * g.head_time() + 500), blocks_{runs_.blocks} {
    const int64_t keys[2] = {g.keys, g.last_keys}, queries[2] = {g.queries, g.last_queries};
    for (int k = 0; k < 2; ++k) {
      score_[k] =
          Gemm({.m = keys[k], .n = g.queries, .k = g.width, .lda = g.width, .ldb = g.queries, .ldc = g.queries});
      for (int q = 0; q < 2; ++q)
        for (int add = 0; add < 2; ++add) {
          by_key_[k][q][add] = Gemm({.m = keys[k],
                                     .n = g.width,
                                     .k = queries[q],
                                     .lda = g.queries,
                                     .ldb = g.width,
                                     .ldc = g.width,
                                     .add = add == 1});
          by_query_[k][q][add] = Gemm({.m = queries[q],
                                       .n = g.width,
                                       .k = keys[k],
                                       .lda = g.queries,
                                       .ldb = g.width,
                                       .ldc = g.width,
                                       .add = add == 1,
                                       .trans_a = true});
        }
    }
  }
  /// There is a kernel for every product.
  bool complete() const {
    bool all = true;
    for (int k = 0; k < 2; ++k) {
      all &= bool(score_[k]);
      for (int q = 0; q < 2; ++q)
        for (int add = 0; add < 2; ++add) all &= by_key_[k][q][add] && by_query_[k][q][add];
    }
    return all;
  }
  void generate() override {
    for (int k = 0; k < 2; ++k) {
      score_[k].generate();
      for (int q = 0; q < 2; ++q)
        for (int add = 0; add < 2; ++add) by_key_[k][q][add].generate(), by_query_[k][q][add].generate();
    }
  }
  Bytes held() const override {
    int64_t bytes = 0;
    for (int k = 0; k < 2; ++k) {
      bytes += score_[k].code_bytes();
      for (int q = 0; q < 2; ++q)
        for (int add = 0; add < 2; ++add) bytes += by_key_[k][q][add].code_bytes() + by_query_[k][q][add].code_bytes();
    }
    return Bytes{bytes};
  }
  std::span<const int> phases() const override { return blocks_; }
  Bytes workspace() const override { return Bytes{threads_ * own()}; }
  void run(const Arguments& a, int, int block, int member) const noexcept override {
    for (int64_t h = runs_.begin(block); h < runs_.end(block); ++h)
      head(a, h, reinterpret_cast<float*>(a.scratch + member * own()));
  }

 private:
  int64_t own() const { return aligned((2 * g_.queries * g_.width + 2 * g_.keys * g_.queries + 2 * g_.queries) * 4); }
  void head(const Arguments& a, int64_t h, float* scratch) const {
    const int64_t base = h * g_.length, d = g_.width;
    float *const q_turned = scratch, *const g_turned = q_turned + g_.queries * d, *const p = g_turned + g_.queries * d,
                 *const ds = p + g_.keys * g_.queries, *const lse = ds + g_.keys * g_.queries,
                 *const dots = lse + g_.queries;
    int64_t touched = 0;  // tiles of dK and dV that hold something
    for (int64_t t = 0; t < g_.tiles; ++t) {
      const int64_t first = base + t * g_.queries, rows = g_.queries_of(t), seen = g_.seen(t);
      const bool last_q = t == g_.tiles - 1;
      const float *const q = a.input<float>(0) + first * d, *const grad = a.input<float>(5) + first * d;
      float* const dq = a.output<float>(0) + first * d;
      k_.turn(q, rows, d, scale_, g_.queries, q_turned);
      k_.turn(grad, rows, d, 1, g_.queries, g_turned);
      k_.dots(grad, a.input<float>(3) + first * d, rows, d, dots);
      // past the last query p is exp(-inf) = 0
      for (int64_t i = 0; i < g_.queries; ++i) lse[i] = i < rows ? a.input<float>(4)[first + i] : __builtin_inff();
      for (int64_t i = rows; i < g_.queries; ++i) dots[i] = 0;
      for (int64_t j = 0; j < seen; ++j) {
        const int64_t row = (base + j * g_.keys) * d;
        const bool last_k = j == g_.key_tiles() - 1, add = j < touched;
        score_[last_k](a.input<float>(1) + row, q_turned, p);
        score_[last_k](a.input<float>(2) + row, g_turned, ds);
        k_.gradient(p, ds, g_.scores(t, j), lse, dots, scale_);
        by_key_[last_k][last_q][add](p, grad, a.output<float>(2) + row);
        by_key_[last_k][last_q][add](ds, q, a.output<float>(1) + row);
        by_query_[last_k][last_q][j > 0](ds, a.input<float>(1) + row, dq);
      }
      touched = std::max(touched, seen);
    }
  }

  AttentionGrid g_;
  float scale_;
  int64_t threads_;
  Runs runs_;
  int blocks_[1];
  Gemm score_[2], by_key_[2][2][2], by_query_[2][2][2];  // [last tile of keys][last of queries][adds]
  const AttentionKernels& k_ = attention_kernels();
};

}  // namespace

std::unique_ptr<Kernel> attention_backward(const ops::AttentionBackward& op, const Request& request) {
  if (!all_float(request.inputs) || request.inputs[0].shape.size() == 0) return slow(op, request);
  auto kernel = std::make_unique<AttentionBackward>(AttentionGrid(request.inputs[0].shape, op.causal), float(op.scale),
                                                    request.threads);
  if (!kernel->complete()) return slow(op, request);
  return kernel;
}

}  // namespace millpond::backend::cpu
