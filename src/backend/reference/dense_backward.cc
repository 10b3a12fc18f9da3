#include "backend/reference/expression.h"
#include "backend/reference/rule.h"
#include "backend/reference/types.h"
#include "ops/dense_backward.h"

namespace millpond::backend::reference {

// One input feature at a time: its column of dx from the old weights, then the weights' step, then dx (perhaps over x).
// Workspace: the column, beside what the epilogue asks for.
std::unique_ptr<Kernel> dense_backward(const ops::DenseBackward& op, const Request& request) {
  const int64_t rows = request.inputs[0].shape[0], in = request.inputs[0].shape[1], out = request.inputs[1].shape[1];
  const bool plain = op.epilogue.empty();
  const int fixed = op.fixed_inputs(), state = op.state();
  const Interpreter epilogue = plain ? Interpreter({}, 0, 0, 0, {}, {})
                                     : Interpreter(op.epilogue, 1, rows, in, std::span(request.inputs).subspan(size_t(fixed)), std::span(request.outputs).subspan(size_t(state)));
  const Bytes column_bytes{rows * int64_t(sizeof(double))};
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, rule = op.rule, bias = op.bias](const Arguments& a) {
      const T *x = a.input<T>(0), *dz = a.input<T>(1);
      double* column = reinterpret_cast<double*>(a.scratch);
      std::byte* scratch = a.scratch + column_bytes.value;
      epilogue.begin(scratch);
      const Parameter<T> kernel = parameter<T>(a, rule, 3, 0, in * out);
      for (int64_t i = 0; i < in; ++i) {
        for (int64_t r = 0; r < rows; ++r) {
          column[r] = 0;
          for (int64_t o = 0; o < out; ++o) column[r] += double(load(dz, r * out + o)) * double(load(kernel.weight, i * out + o));
        }
        for (int64_t o = 0; o < out; ++o) {
          double g = 0;
          for (int64_t r = 0; r < rows; ++r) g += double(load(x, r * in + i)) * double(load(dz, r * out + o));
          apply_rule(rule, kernel.weight, kernel.slots, i * out + o, Number<T>(g), a.input<float>(2));
        }
        for (int64_t r = 0; r < rows; ++r) {
          if (plain) store(a.output<T>(state), r * in + i, column[r]);
          else epilogue.at(r, i, column[r], a.in + fixed, a.out + state, scratch);
        }
      }
      epilogue.end(a.out + state, scratch);
      if (!bias) return;
      const Parameter<T> offset = parameter<T>(a, rule, 4 + rule.slots(), 1 + rule.slots(), out);
      for (int64_t o = 0; o < out; ++o) {
        double g = 0;
        for (int64_t r = 0; r < rows; ++r) g += double(load(dz, r * out + o));
        apply_rule(rule, offset.weight, offset.slots, o, Number<T>(g), a.input<float>(2));
      }
    }, column_bytes + epilogue.workspace());
  });
}

}  // namespace millpond::backend::reference
