#include "backend/reference/rule.h"
#include "backend/reference/types.h"
#include "ops/dense_update.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> dense_update(const ops::DenseUpdate& op, const Request& request) {
  const int64_t rows = request.inputs[0].shape[0], in = request.inputs[0].shape[1], out = request.inputs[1].shape[1];
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, rule = op.rule, bias = op.bias](const Arguments& a) {
      const T *x = a.input<T>(0), *dz = a.input<T>(1);
      const Parameter<T> kernel = parameter<T>(a, rule, 3, 0, in * out);
      for (int64_t i = 0; i < in; ++i) {
        for (int64_t o = 0; o < out; ++o) {
          double g = 0;
          for (int64_t r = 0; r < rows; ++r) g += double(load(x, r * in + i)) * double(load(dz, r * out + o));
          apply_rule(rule, kernel.weight, kernel.slots, i * out + o, Number<T>(g), a.input<float>(2));
        }
      }
      if (!bias) return;
      const Parameter<T> offset = parameter<T>(a, rule, 4 + rule.slots(), 1 + rule.slots(), out);
      for (int64_t o = 0; o < out; ++o) {
        double g = 0;
        for (int64_t r = 0; r < rows; ++r) g += double(load(dz, r * out + o));
        apply_rule(rule, offset.weight, offset.slots, o, Number<T>(g), a.input<float>(2));
      }
    });
  });
}

}  // namespace millpond::backend::reference
