#include "ops/dense_update.h"
#include "backend/reference/rule.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> dense_update(const ops::DenseUpdate& op, const Request& request) {
  const int64_t rows = request.inputs[0].shape[0], in = request.inputs[0].shape[1], out = request.inputs[1].shape[1];
  const RuleOnElements rule(op.rule, request.inputs[0].dtype, in * out);
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop(
        [=, slots = op.rule.slot_count(), bias = op.bias](const Arguments& a) {
          const T *x = a.input<T>(0), *dz = a.input<T>(1);
          const RuleOnElements::Parameter<T> kernel(rule, a, 3, 0, in * out, a.input<float>(2), a.scratch);
          for (int64_t i = 0; i < in; ++i) {
            for (int64_t o = 0; o < out; ++o) {
              double g = 0;
              for (int64_t r = 0; r < rows; ++r) g += double(load(x, r * in + i)) * double(load(dz, r * out + o));
              kernel.step(i * out + o, double(Number<T>(g)));
            }
          }
          if (!bias) return;
          const RuleOnElements::Parameter<T> offset(rule, a, 4 + slots, 1 + slots, out, a.input<float>(2), a.scratch);
          for (int64_t o = 0; o < out; ++o) {
            double g = 0;
            for (int64_t r = 0; r < rows; ++r) g += double(load(dz, r * out + o));
            offset.step(o, double(Number<T>(g)));
          }
        },
        rule.workspace());
  });
}

}  // namespace millpond::backend::reference
