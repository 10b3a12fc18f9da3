#include "ops/step_size.h"
#include "backend/reference/types.h"
#include "ops/apply.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> step_size(const ops::StepSize& op, const Request&) {
  const Bytes registers{int64_t((op.rule.scalars.inputs.size() + op.rule.scalars.code.size()) * sizeof(double))};
  return loop(
      [rule = op.rule](const Arguments& a) {
        const ops::Expression& e = rule.scalars;
        double* r = reinterpret_cast<double*>(a.scratch);
        r[0] = double(a.input<float>(0)[0]);
        r[1] = double(a.input<int64_t>(1)[0]) + 1;
        for (size_t i = 2; i < e.inputs.size(); ++i) r[i] = double(a.input<float>(int(i))[0]);
        for (size_t i = 0; i < e.code.size(); ++i) {
          const ops::Instruction& c = e.code[i];
          const double y = c.b < 0 ? 0.0 : r[c.b];
          r[e.inputs.size() + i] = c.function != ops::Function::k_constant ? ops::apply<double>(c.function, r[c.a], y)
                                   : c.dtype == DType::kFloat64            ? c.immediate
                                                                           : double(float(c.immediate));
        }
        const int made = rule.made_scalars();
        if (rule.dtype == DType::kFloat64)
          for (int i = 0; i < made; ++i) a.output<double>(0)[i] = r[e.results[size_t(i)].reg];
        for (int i = rule.dtype == DType::kFloat64 ? made : 0; i < int(e.results.size()); ++i)
          (i < made ? a.output<float>(0)[i] : a.output<float>(1 + i - made)[0]) = float(r[e.results[size_t(i)].reg]);
      },
      registers);
}

}  // namespace millpond::backend::reference
