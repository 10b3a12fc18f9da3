#include "ops/attention_backward.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

// With p = exp(score - lse) and e_i = dout_i . out_i: ds_ij = p_ij (dout_i . v_j - e_i), dq_i = scale sum_j ds_ij k_j,
// dk_j = scale sum_i ds_ij q_i, dv_j = sum_i p_ij dout_i. First by rows for dq, then by columns for dk and dv.
// Workspace: p and ds of one row or column.
std::unique_ptr<Kernel> attention_backward(const ops::AttentionBackward& op, const Request& request) {
  const Shape shape = request.inputs[0].shape;
  const int64_t heads = shape[0] * shape[1], length = shape[2], width = shape[3];
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop(
        [=, causal = op.causal, scale = op.scale](const Arguments& a) {
          double *p = reinterpret_cast<double*>(a.scratch), *ds = p + length;
          for (int64_t head = 0; head < heads; ++head) {
            auto at = [&](int operand, int64_t row, int64_t d) {
              return double(load(a.input<T>(operand), (head * length + row) * width + d));
            };
            auto put = [&](int output, int64_t row, int64_t d, double v) {
              store(a.output<T>(output), (head * length + row) * width + d, v);
            };
            auto fill = [&](int64_t i, int64_t j, int64_t slot) {
              double score = 0, dp = 0;
              for (int64_t d = 0; d < width; ++d)
                score += scale * at(0, i, d) * at(1, j, d), dp += at(5, i, d) * (at(2, j, d) - at(3, i, d));
              p[slot] = std::exp(score - double(load(a.input<T>(4), head * length + i)));
              ds[slot] = p[slot] * dp;
            };
            // dq may not lie over q, so the order of the two halves is free
            for (int64_t i = 0; i < length; ++i) {
              const int64_t seen = causal ? i + 1 : length;
              for (int64_t j = 0; j < seen; ++j) fill(i, j, j);
              for (int64_t d = 0; d < width; ++d) {
                double dq = 0;
                for (int64_t j = 0; j < seen; ++j) dq += scale * ds[j] * at(1, j, d);
                put(0, i, d, dq);
              }
            }
            for (int64_t j = 0; j < length; ++j) {
              const int64_t first = causal ? j : 0;
              for (int64_t i = first; i < length; ++i) fill(i, j, i);
              for (int64_t d = 0; d < width; ++d) {
                double dk = 0, dv = 0;
                for (int64_t i = first; i < length; ++i) dk += scale * ds[i] * at(0, i, d), dv += p[i] * at(5, i, d);
                put(1, j, d, dk);
                put(2, j, d, dv);
              }
            }
          }
        },
        Bytes{2 * length * int64_t(sizeof(double))});
  });
}

}  // namespace millpond::backend::reference
