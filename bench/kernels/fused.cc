// The fused kernel: right on random expressions and awkward shapes, and how long a chunk takes.
#include "harness.h"
#include "ops/all.h"

using namespace harness;
using namespace ops;

static Expression random_expression(Random& r, int64_t rows, int64_t cols, std::vector<TensorType>& operands,
                                    std::vector<TensorType>& results, std::vector<Fill>& fills,
                                    std::vector<graph::Overlap>& over) {
  Expression e;
  operands.clear(), results.clear(), fills.clear(), over.clear();
  const int n = 1 + int(r.below(4));
  std::vector<bool>
      boolean;  // of each register: conditions are chosen by and stored, and nothing is computed with them
  for (int i = 0; i < n; ++i) {
    const Extent x = i == 0 ? Extent::kFull : Extent(r.below(4));
    e.inputs.push_back(x);
    const Shape s = x == Extent::kFull     ? Shape{rows, cols}
                    : x == Extent::kRow    ? Shape{cols}
                    : x == Extent::kColumn ? Shape{rows}
                                           : Shape{};
    const DType t = i == 0 || r.below(5) ? DType::kFloat32 : DType::kBool;
    operands.push_back({t, s});
    boolean.push_back(t == DType::kBool);
    fills.push_back(t == DType::kFloat32 ? uniform(r.next(), -2, 2) : below(r.next(), 3));
  }
  e.inputs.push_back(Extent::kScalar);
  operands.push_back({DType::kInt32, {}});
  fills.push_back(constant(double(r.below(1000))));
  boolean.push_back(false);
  const int counter = n;
  const int code = int(r.below(10));
  for (int i = 0; i < code; ++i) {
    // smooth functions only: a step in a value near zero would hide behind no tolerance
    static constexpr Function pool[] = {Function::k_negate,   Function::k_square,  Function::k_abs,
                                        Function::k_tanh,     Function::k_sigmoid, Function::k_relu,
                                        Function::k_erf,      Function::k_add,     Function::k_subtract,
                                        Function::k_multiply, Function::k_maximum, Function::k_minimum,
                                        Function::k_gate,     Function::k_greater, Function::k_select,
                                        Function::k_constant, Function::k_dropout, Function::k_sigmoid_cross_entropy};
    Instruction c{pool[r.below(std::size(pool))]};
    const int top = n + 1 + i;
    auto reg = [&] {
      int k;
      do k = int(r.below(3) && i ? uint64_t(n + 1) + r.below(uint64_t(i)) : r.below(uint64_t(top)));
      while (k == counter || boolean[size_t(k)]);
      return int16_t(k);
    };
    if (c.function == Function::k_select && std::ranges::count(boolean, true) == 0) c.function = Function::k_add;
    if (c.function != Function::k_constant) c.a = reg();
    if (arity(c.function) > 1) c.b = reg();
    if (arity(c.function) > 2) c.c = reg();
    if (c.function == Function::k_dropout) c.b = int16_t(counter), c.immediate = 0.25f, c.salt = r.next();
    if (c.function == Function::k_constant) c.immediate = float(r.uniform());
    // comparisons and gates of computed values may fall differently in the last bit: compare operands only
    if (c.function == Function::k_greater || c.function == Function::k_gate || c.function == Function::k_select) {
      auto operand = [&](bool condition = false) {
        int k;
        do k = int(r.below(uint64_t(condition ? top : n)));
        while (k == counter || boolean[size_t(k)] != condition);
        return int16_t(k);
      };
      if (c.function == Function::k_greater) c.a = operand(), c.b = operand();
      if (c.function == Function::k_gate) c.b = operand();
      if (c.function == Function::k_select) c.a = operand(true);
    }
    e.code.push_back(c);
    boolean.push_back(c.function == Function::k_greater);
  }
  const int outs = 1 + int(r.below(3));
  for (int i = 0; i < outs; ++i) {
    Result x;
    do
      x.reg = int16_t(r.below(4) && code ? uint64_t(n + 1) + r.below(uint64_t(code)) : r.below(uint64_t(n + 1 + code)));
    while (x.reg == counter || boolean[size_t(x.reg)]);
    x.collect = r.below(2) ? Collect::kStore : Collect(r.below(4));
    if (x.collect != Collect::kStore) x.scale = r.below(2) ? 1.f : 0.125f;
    e.results.push_back(x);
    results.push_back(f32(x.collect == Collect::kStore     ? Shape{rows, cols}
                          : x.collect == Collect::kSumRows ? Shape{cols}
                          : x.collect == Collect::kSumCols ? Shape{rows}
                                                           : Shape{}));
  }
  // some results over operands
  std::vector<bool> taken(operands.size());
  for (int o = 0; o < outs; ++o)
    for (int i = 0; i < n; ++i)
      if (e.results[size_t(o)].collect == Collect::kStore && e.inputs[size_t(i)] == Extent::kFull &&
          operands[size_t(i)].dtype == DType::kFloat32 && !taken[size_t(i)] && r.below(2)) {
        taken[size_t(i)] = true;
        over.push_back({o, i});
        break;
      }
  return e;
}

static void measure(const char* what, const Expression& e, int64_t rows, int64_t cols, std::vector<TensorType> operands,
                    std::vector<TensorType> results, std::vector<Fill> fills, int threads = 1) {
  Fused op(e, rows, cols, results);
  Call c(backend::cpu_backend(), op, operands, fills, threads);
  Team team(threads);
  Stage stage;
  stage.add(c);
  const double t = least([&] { stage.run(team); }, 0.3, threads == 1);
  double bytes = 0;
  for (auto& x : operands) bytes += double(x.bytes().value);
  for (auto& x : results) bytes += double(x.bytes().value);
  std::printf("%-44s %6ld x %-7ld %2zu instr, %d thr: %10.1f ns  %6.2f GB/s  %.3f ns/element (workspace %ld)\n", what,
              long(rows), long(cols), e.code.size(), threads, t * 1e9, bytes / t * 1e-9, t * 1e9 / double(rows * cols),
              long(c.kernel().workspace().value));
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
  Random r(argc > 2 ? uint64_t(std::atoi(argv[2])) : 1);
  int bad = 0;
  const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 127, 300};
  for (int i = 0; i < rounds && bad < 5; ++i) {
    int64_t rows = sizes[r.below(std::size(sizes))], cols = sizes[r.below(std::size(sizes))];
    if (i % 50 == 0) rows = 1 + int64_t(r.below(2000)), cols = 1 + int64_t(r.below(1500));
    if (i % 77 == 0) rows = 2, cols = 300000;
    std::vector<TensorType> operands, results;
    std::vector<Fill> fills;
    std::vector<graph::Overlap> over;
    const Expression e = random_expression(r, rows, cols, operands, results, fills, over);
    const double n = double(rows * cols) + 1;
    const std::string what = std::to_string(i) + ": " + std::to_string(rows) + "x" + std::to_string(cols) + " " +
                             to_string(e) + " over " + [&] {
                               std::string t;
                               for (auto& x : over)
                                 t += " " + std::to_string(x.output) + "<-" + std::to_string(x.input);
                               for (auto& x : operands) t += " " + std::string(to_string(x.dtype));
                               return t;
                             }();
    bad +=
        !check(what.c_str(), Fused(e, rows, cols, results), operands, fills, {2e-5, 2e-6 * std::sqrt(n) + 1e-5}, over);
  }
  std::printf("%d expressions, %d wrong\n", rounds, bad);
  if (bad) return 1;
  {  // binary cross-entropy on 8 logits: loss, gradient, accuracy
    Expression e;
    e.inputs = {Extent::kFull, Extent::kFull};
    e.code = {{Function::k_sigmoid_cross_entropy, 0, 1},
              {Function::k_sigmoid, 0},
              {Function::k_subtract, 3, 1},
              {Function::k_constant, -1, -1, -1, 0.125f},
              {Function::k_multiply, 4, 5},
              {Function::k_constant, -1, -1, -1, 0.5f},
              {Function::k_greater, 3, 7},
              {Function::k_equal, 8, 1}};
    e.results = {{2, Collect::kSumAll, 0.125f}, {6}, {9, Collect::kSumAll, 0.125f}};
    for (int64_t n : {8, 32, 64})
      measure("bce", e, n, 1, {f32({n, 1}), f32({n, 1})}, {f32({}), f32({n, 1}), f32({})}, {uniform(1), below(2, 2)});
  }
  {
    Expression e;
    e.inputs = {Extent::kFull, Extent::kRow};
    e.code = {{Function::k_add, 0, 1}, {Function::k_relu, 2}};
    e.results = {{3}};
    measure("bias relu", e, 8, 8, {f32({8, 8}), f32({8})}, {f32({8, 8})}, {uniform(1)});
    measure("bias relu", e, 64, 512, {f32({64, 512}), f32({512})}, {f32({64, 512})}, {uniform(1)});
    measure("bias relu", e, 4096, 4096, {f32({4096, 4096}), f32({4096})}, {f32({4096, 4096})}, {uniform(1)});
    measure("bias relu", e, 4096, 4096, {f32({4096, 4096}), f32({4096})}, {f32({4096, 4096})}, {uniform(1)}, 2);
  }
  for (Function f : {Function::k_exp, Function::k_log, Function::k_log1p, Function::k_tanh, Function::k_sigmoid,
                     Function::k_erf, Function::k_sqrt, Function::k_relu}) {
    Expression e;
    e.inputs = {Extent::kFull};
    e.code = {{f, 0}};
    e.results = {{1}};
    measure(std::string(to_string(f)).c_str(), e, 1, 4096, {f32({4096})}, {f32({4096})}, {uniform(1, 0.1, 3)});
  }
  {  // gelu by erf and a few more: ten cheap instructions
    Expression e;
    e.inputs = {Extent::kFull, Extent::kFull};
    for (int16_t i = 0; i < 10; ++i)
      e.code.push_back({i % 2 ? Function::k_multiply : Function::k_add, int16_t(i + 1), 0});
    e.results = {{11}};
    measure("ten cheap", e, 1, 8, {f32({8}), f32({8})}, {f32({8})}, {uniform(1)});
    measure("ten cheap", e, 1, 100000, {f32({100000}), f32({100000})}, {f32({100000})}, {uniform(1)});
  }
  {
    Expression e;
    e.inputs = {Extent::kFull, Extent::kRow, Extent::kScalar};
    e.code = {{Function::k_add, 0, 1}, {Function::k_relu, 3}, {Function::k_dropout, 4, 2, -1, 0.5f, 7}};
    e.results = {{5}};
    measure("bias relu dropout", e, 64, 512, {f32({64, 512}), f32({512}), {DType::kInt32, {}}}, {f32({64, 512})},
            {uniform(1)});
  }
}
