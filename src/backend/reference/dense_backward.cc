#include "ops/dense_backward.h"
#include "backend/reference/expression.h"
#include "backend/reference/rule.h"
#include "backend/reference/types.h"

namespace millpond::backend::reference {

// One input feature at a time: its column of dx from the old weights, then the weights' step, then dx (perhaps over x).
// Workspace: the column, beside what the rule and the epilogue ask for.
std::unique_ptr<Kernel> dense_backward(const ops::DenseBackward& op, const Request& request) {
  const int64_t rows = request.inputs[0].shape[0], in = request.inputs[0].shape[1], out = request.inputs[1].shape[1];
  const bool plain = op.epilogue.empty();
  const int fixed = op.fixed_inputs(), state = op.state();
  const Interpreter epilogue =
      plain ? Interpreter({}, 0, 0, 0, {}, {})
            : Interpreter(op.epilogue, 1, rows, in, std::span(request.inputs).subspan(size_t(fixed)),
                          std::span(request.outputs).subspan(size_t(state)));
  const RuleOnElements rule(op.rule, request.inputs[0].dtype, in * out);
  const Bytes column_bytes{rows * int64_t(sizeof(double))};
  return with_floating(request.inputs[0].dtype, [&]<class T>() {
    return loop(
        [=, slots = op.rule.slot_count(), bias = op.bias](const Arguments& a) {
          const T *x = a.input<T>(0), *dz = a.input<T>(1);
          double* column = reinterpret_cast<double*>(a.scratch);
          std::byte* const registers = a.scratch + column_bytes.value;
          std::byte* scratch = registers + rule.workspace().value;
          epilogue.begin(scratch);
          const RuleOnElements::Parameter<T> kernel(rule, a, 3, 0, in * out, a.input<float>(2), registers);
          for (int64_t i = 0; i < in; ++i) {
            for (int64_t r = 0; r < rows; ++r) {
              column[r] = 0;
              for (int64_t o = 0; o < out; ++o)
                column[r] += double(load(dz, r * out + o)) * double(load(kernel.weights(), i * out + o));
            }
            for (int64_t o = 0; o < out; ++o) {
              double g = 0;
              for (int64_t r = 0; r < rows; ++r) g += double(load(x, r * in + i)) * double(load(dz, r * out + o));
              kernel.step(i * out + o, double(Number<T>(g)));
            }
            for (int64_t r = 0; r < rows; ++r) {
              if (plain)
                store(a.output<T>(state), r * in + i, column[r]);
              else
                epilogue.at(r, i, column[r], a.in + fixed, a.out + state, scratch);
            }
          }
          epilogue.end(a.out + state, scratch);
          if (!bias) return;
          const RuleOnElements::Parameter<T> offset(rule, a, 4 + slots, 1 + slots, out, a.input<float>(2), registers);
          for (int64_t o = 0; o < out; ++o) {
            double g = 0;
            for (int64_t r = 0; r < rows; ++r) g += double(load(dz, r * out + o));
            offset.step(o, double(Number<T>(g)));
          }
        },
        column_bytes + rule.workspace() + epilogue.workspace());
  });
}

}  // namespace millpond::backend::reference
