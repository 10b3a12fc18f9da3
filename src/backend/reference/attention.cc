#include "ops/attention.h"
#include "backend/reference/rows.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

// Workspace: the scores of one row.
std::unique_ptr<Kernel> attention(const ops::Attention& op, const Request& request) {
  const Shape q = request.inputs[0].shape;
  const int64_t heads = q[0] * q[1], length = q[2], width = q[3];
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop(
        [=, causal = op.causal, scale = op.scale](const Arguments& a) {
          double* score = reinterpret_cast<double*>(a.scratch);
          for (int64_t head = 0; head < heads; ++head) {
            const int64_t base = head * length * width;
            for (int64_t i = 0; i < length; ++i) {
              const int64_t seen = causal ? i + 1 : length;
              for (int64_t j = 0; j < seen; ++j) {
                score[j] = 0;
                for (int64_t d = 0; d < width; ++d)
                  score[j] += scale * double(load(a.input<T>(0), base + i * width + d)) *
                              double(load(a.input<T>(1), base + j * width + d));
              }
              const LogSum s = log_sum_exp(score, seen);
              store(a.output<T>(1), head * length + i, s.value());
              for (int64_t d = 0; d < width; ++d) {
                double total = 0;
                for (int64_t j = 0; j < seen; ++j)
                  total += std::exp(score[j] - s.largest) / s.sum * double(load(a.input<T>(2), base + j * width + d));
                store(a.output<T>(0), base + i * width + d, total);
              }
            }
          }
        },
        Bytes{length * int64_t(sizeof(double))});
  });
}

}  // namespace millpond::backend::reference
