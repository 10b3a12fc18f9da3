// Backward of dense layers: right for awkward sizes, rules and epilogues, and how long the layers of the five works
// take.
#include "harness.h"
#include "ops/all.h"
#include "support/rules.h"

using namespace harness;
using namespace ops;

static Rule rule_of(int i) {
  const Formula::Before before{.weight_decay = i % 2 ? 0.01 : 0};
  return i % 3 == 0   ? test::sgd_rule(before)
         : i % 3 == 1 ? test::momentum_rule(0.9, i >= 3, before)
                      : test::adam_rule(before);
}
static std::vector<TensorType> operands(const Rule& r, bool bias, int64_t rows, int64_t in, int64_t out) {
  std::vector<TensorType> t{f32({rows, in}), f32({rows, out}), f32({r.scalar_count()})};
  for (int k = 0; k <= r.slot_count(); ++k) t.push_back(f32({in, out}));
  if (bias)
    for (int k = 0; k <= r.slot_count(); ++k) t.push_back(f32({out}));
  return t;
}
static std::vector<Fill> fills(const Rule& r, bool bias) {
  std::vector<Fill> f{uniform(1), uniform(2), uniform(3, 1e-3, 2e-3)};
  for (int b = 0; b < (bias ? 2 : 1); ++b) {
    f.push_back(uniform(uint64_t(4 + 10 * b)));
    if (r.slot_count() > 0) f.push_back(uniform(uint64_t(5 + 10 * b), -0.1, 0.1));
    if (r.slot_count() > 1) f.push_back(uniform(uint64_t(6 + 10 * b), 0.01, 0.2));
  }
  return f;
}
static Expression gate() { return {{Extent::kFull, Extent::kFull}, {{Function::k_gate, 0, 1}}, {{2}}}; }
static Expression dropped() {
  return {{Extent::kFull, Extent::kFull, Extent::kScalar},
          {{Function::k_gate, 0, 1}, {Function::k_dropout, 3, 2, -1, 0.5f, 99}},
          {{4}}};
}
static Expression summed() {
  return {{Extent::kFull, Extent::kRow},
          {{Function::k_multiply, 0, 1}, {Function::k_tanh, 2}},
          {{3}, {3, Collect::kSumRows}, {0, Collect::kSumAll, 0.5f}, {2, Collect::kSumCols}}};
}

int main(int argc, char** argv) {
  int bad = 0, count = 0;
  const int64_t shapes[][3] = {{8, 4, 8},      {8, 8, 1},       {8, 8, 8},      {1, 1, 1},      {3, 5, 7},
                               {32, 100, 64},  {32, 64, 1},     {64, 200, 512}, {64, 512, 256}, {64, 256, 1},
                               {17, 33, 65},   {128, 784, 512}, {128, 512, 10}, {5, 1000, 3},   {33, 129, 2},
                               {7, 16, 16},    {400, 50, 40},   {32, 3000, 10}, {2, 40, 600},   {1, 300, 300},
                               {130, 31, 100}, {9, 17, 15},     {9, 300, 14},   {500, 129, 13}, {16, 16, 9},
                               {6, 20, 5},     {6, 70, 4},      {6, 70, 6},     {6, 70, 11},    {6, 70, 12}};
  if (argc <= 1 || std::atoi(argv[1]))
    for (auto& s : shapes)
      for (int i = 0; i < 6; ++i) {
        if (double(s[0]) * double(s[1]) * double(s[2]) > 5e6 && i != 2) continue;
        const Rule r = rule_of(i);
        const bool bias = i % 2 == 0;
        const std::string what =
            std::to_string(s[0]) + "x" + std::to_string(s[1]) + "x" + std::to_string(s[2]) + " " + to_string(r);
        // the step is 1e-3 and the update of Adam is of that size: errors of a gradient that nearly cancels do not grow
        const Tolerance tol{2e-5, 1e-5 * std::sqrt(double(s[0]))};
        ++count, bad += !check(("update " + what).c_str(), DenseUpdate(r, bias), operands(r, bias, s[0], s[1], s[2]),
                               fills(r, bias), tol);
        const int state = DenseBackward(r, bias).state();
        for (int e = 0; e < 5; ++e) {
          std::vector<TensorType> t = operands(r, bias, s[0], s[1], s[2]);
          std::vector<Fill> f = fills(r, bias);
          Expression x;
          if (e == 1 || e == 2) x = gate(), t.push_back(t[0]), f.push_back(f[0]);
          if (e == 3)
            x = dropped(), t.push_back(t[0]), f.push_back(f[0]), t.push_back({DType::kInt32, {}}),
            f.push_back(constant(5));
          if (e == 4) {
            x = summed(), t.push_back(f32({s[1]})), f.push_back(uniform(77));
          }
          // dx over x, or over the gate's operand
          std::vector<graph::Overlap> over;
          if (e == 0 || e == 3) over = {{state, 0}};
          if (e == 2) over = {{state, DenseBackward(r, bias).fixed_inputs()}};
          if (e == 4) continue;  // shapes of sums: the operator does not infer them
          ++count, bad += !check(("backward " + std::to_string(e) + " " + what).c_str(), DenseBackward(r, bias, x), t,
                                 f, {2e-5, 2e-5 * std::sqrt(double(std::max(s[0], s[2])))}, over);
        }
        if (bad > 5) return 1;
      }
  std::printf("%d cases, %d wrong\n", count, bad);
  if (bad) return 1;
  const Rule adam = rule_of(2);
  struct Layer {
    const char* name;
    int64_t rows, in, out;
    int kind;  // 0 update, 1 backward, 2 backward with gate
  };
  const Layer layers[] = {
      {"tiny 1", 8, 4, 8, 0},           {"tiny 2", 8, 8, 1, 2},           {"mlp_small 1", 32, 100, 64, 0},
      {"mlp_small 2", 32, 64, 1, 2},    {"mlp_large 1", 64, 200, 512, 0}, {"mlp_large 2", 64, 512, 256, 2},
      {"mlp_large 3", 64, 256, 1, 2},   {"mlp_784 1", 128, 784, 512, 0},  {"mlp_784 2", 128, 512, 512, 2},
      {"mlp_784 3", 128, 512, 10, 2},   {"gpt2 mlp", 256, 768, 3072, 2},  {"gpt2 mlp 2", 256, 3072, 768, 2},
      {"big batch", 1024, 512, 512, 2}, {"cnn dense", 32, 394272, 10, 2}, {"cnn update only", 32, 394272, 10, 0}};
  for (const Layer& l : layers) {
    for (int threads : {1, 2}) {
      if (threads == 2 && l.rows < 64 && l.in < 1000) continue;
      std::vector<TensorType> t = operands(adam, true, l.rows, l.in, l.out);
      std::vector<Fill> f = fills(adam, true);
      if (l.kind == 2) t.push_back(t[0]), f.push_back(f[0]);
      std::unique_ptr<graph::Operator> op;
      if (l.kind == 0)
        op = std::make_unique<DenseUpdate>(adam, true);
      else
        op = std::make_unique<DenseBackward>(adam, true, l.kind == 2 ? gate() : Expression{});
      // in the engine the gate's operand is x itself where dx may take its place
      Call c(backend::cpu_backend(), *op, t, f, threads,
             l.in > 1000 && l.kind ? std::vector<graph::Overlap>{{6, 0}} : std::vector<graph::Overlap>{});
      if (l.kind == 2) const_cast<void**>(c.arguments().in)[9] = c.arguments().in[0];
      Team team(threads);
      Stage stage;
      stage.add(c);
      const double time = least([&] { stage.run(team); }, l.in > 1000 ? 1.5 : 0.4, threads == 1);
      const double flops = 2.0 * double(l.rows * l.in * l.out) * (l.kind ? 2 : 1),
                   bytes = 4.0 * (double(l.rows * l.in) * (l.kind ? 2 : 1) + 6.0 * double(l.in * l.out));
      std::string blocks;
      for (int p : c.kernel().phases()) blocks += " " + std::to_string(p);
      std::printf(
          "%-16s %4ld x %6ld x %4ld %-9s %d thr: %11.3f us %7.1f GFLOP/s %6.1f GB/s  blocks%s, workspace %ld KiB\n",
          l.name, long(l.rows), long(l.in), long(l.out), l.kind == 0 ? "update" : "backward", threads, time * 1e6,
          flops / time * 1e-9, bytes / time * 1e-9, blocks.c_str(), long(c.kernel().workspace().value >> 10));
    }
  }
}
