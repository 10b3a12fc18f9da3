// Products: right for awkward sizes, transposes, batches and epilogues, and how long the forward layers of the works
// take.
#include "harness.h"
#include "ops/all.h"

using namespace harness;
using namespace ops;

static std::vector<Expression> epilogues() {
  return {{},
          {{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}}, {{2}}},
          {{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}, {Function::k_relu, 2}}, {{3}}},
          {{Extent::kFull, Extent::kFull}, {{Function::k_gate, 0, 1}}, {{2}, {2, Collect::kSumRows}}},
          {{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}, {Function::k_sigmoid, 2}}, {{2}, {3}}},
          {{Extent::kFull, Extent::kColumn},
           {{Function::k_multiply, 0, 1}, {Function::k_square, 2}},
           {{3, Collect::kSumAll, 0.25f}, {2, Collect::kSumCols}}}};
}

int main(int argc, char** argv) {
  Random r(argc > 2 ? uint64_t(std::atoi(argv[2])) : 1);
  int bad = 0, count = argc > 1 ? std::atoi(argv[1]) : 1500;
  const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 10, 13, 15, 16, 17, 31, 33, 50, 64, 65, 100, 129};
  for (int i = 0; i < count && bad < 5; ++i) {
    auto size = [&] { return sizes[r.below(std::size(sizes))]; };
    int64_t m = size(), k = size(), n = size();
    if (i % 20 == 0) (i % 3 ? m : i % 7 ? k : n) = 300 + int64_t(r.below(900));
    if (i % 101 == 0) m = 32, k = 20000, n = 1 + int64_t(r.below(15));
    const bool ta = r.below(3) == 0, tb = r.below(3) == 0;
    std::vector<int64_t> x, y;
    const int batch = int(r.below(4));
    if (batch == 1) x = {3}, y = {3};
    if (batch == 2) x = {2, 3}, y = {3};
    if (batch == 3 && r.below(2))
      x = {2, 1}, y = {1, 3};
    else if (batch == 3)
      x = {4};
    int64_t lead = batch == 0 ? 1 : batch == 1 ? 3 : batch == 2 ? 6 : x.size() == 2 ? 6 : 4;
    Shape cs = batch == 0      ? Shape{m, n}
               : batch == 1    ? Shape{3, m, n}
               : batch == 2    ? Shape{2, 3, m, n}
               : x.size() == 2 ? Shape{2, 3, m, n}
                               : Shape{4, m, n};
    x.insert(x.end(), {ta ? k : m, ta ? m : k});
    y.insert(y.end(), {tb ? n : k, tb ? k : n});
    const std::vector<Expression> all = epilogues();
    const Expression& e = all[r.below(all.size())];
    std::vector<TensorType> t{f32(Shape(std::span<const int64_t>(x))), f32(Shape(std::span<const int64_t>(y)))};
    std::vector<Fill> f{uniform(r.next()), uniform(r.next()), uniform(r.next())};
    if (!e.empty())
      t.push_back(f32(e.inputs[1] == Extent::kRow ? Shape{n} : e.inputs[1] == Extent::kColumn ? Shape{lead * m} : cs));
    const std::string what = std::to_string(i) + ": " + to_string(t[0]) + (ta ? "^T " : " ") + to_string(t[1]) +
                             (tb ? "^T " : " ") + to_string(e);
    bad += !check(what.c_str(), MatMul(ta, tb, e), t, f,
                  {1e-5, 2e-6 * std::sqrt(double(k)) * std::sqrt(double(std::max(m * lead, n))) + 1e-6 * double(k)});
  }
  std::printf("%d products, %d wrong\n", count, bad);
  if (bad) return 1;
  struct Layer {
    const char* name;
    int64_t m, k, n;
    int epilogue;
    bool ta, tb;
  };
  const Layer layers[] = {{"tiny 1", 8, 4, 8, 2, 0, 0},
                          {"tiny 2", 8, 8, 1, 1, 0, 0},
                          {"mlp_small 1", 32, 100, 64, 2, 0, 0},
                          {"mlp_small 2", 32, 64, 1, 1, 0, 0},
                          {"mlp_large 1", 64, 200, 512, 2, 0, 0},
                          {"mlp_large 2", 64, 512, 256, 2, 0, 0},
                          {"mlp_large 3", 64, 256, 1, 1, 0, 0},
                          {"mlp_784 1", 128, 784, 512, 2, 0, 0},
                          {"mlp_784 2", 128, 512, 512, 2, 0, 0},
                          {"mlp_784 3", 128, 512, 10, 1, 0, 0},
                          {"cnn dense", 32, 394272, 10, 1, 0, 0},
                          {"gpt2 mlp", 256, 768, 3072, 1, 0, 0},
                          {"gpt2 mlp 2", 256, 3072, 768, 1, 0, 0},
                          {"512^3", 512, 512, 512, 0, 0, 0},
                          {"512^3 b^T", 512, 512, 512, 0, 0, 1},
                          {"512^3 a^T", 512, 512, 512, 0, 1, 0},
                          {"dX mlp_large", 64, 256, 512, 3, 0, 1},
                          {"8 rows b^T", 8, 1024, 1024, 0, 0, 1},
                          {"dX cnn", 32, 10, 394272, 0, 0, 1},
                          {"1024^3", 1024, 1024, 1024, 0, 0, 0},
                          {"gpt2 logits", 256, 768, 50257, 0, 0, 1}};
  for (const Layer& l : layers)
    for (int threads : {1, 2}) {
      const double flops = 2.0 * double(l.m) * double(l.k) * double(l.n);
      if (threads == 2 && flops < 1e6) continue;
      if (argc > 3 && !std::strstr(l.name, argv[3])) continue;
      const Expression e = epilogues()[size_t(l.epilogue)];
      std::vector<TensorType> t{f32(l.ta ? Shape{l.k, l.m} : Shape{l.m, l.k}),
                                f32(l.tb ? Shape{l.n, l.k} : Shape{l.k, l.n})};
      if (!e.empty()) t.push_back(f32(e.inputs[1] == Extent::kRow ? Shape{l.n} : Shape{l.m, l.n}));
      Call c(backend::cpu_backend(), MatMul(l.ta, l.tb, e), t, {uniform(1)}, threads);
      Team team(threads);
      Stage stage;
      stage.add(c);
      const double time = least([&] { stage.run(team); }, flops > 1e9 ? 1.5 : 0.4, threads == 1);
      std::string blocks;
      for (int p : c.kernel().phases()) blocks += " " + std::to_string(p);
      std::printf("%-16s %4ld x %6ld x %5ld %d thr: %11.3f us %7.1f GFLOP/s %6.1f GB/s  blocks%s, workspace %ld KiB\n",
                  l.name, long(l.m), long(l.k), long(l.n), threads, time * 1e6, flops / time * 1e-9,
                  4 * double(l.m * l.k + l.k * l.n + l.m * l.n) / time * 1e-9, blocks.c_str(),
                  long(c.kernel().workspace().value >> 10));
    }
}
