// How long kernels on rows, channels, copies and attention take, on the shapes of real models: least time of many runs,
// and the rate of what has to move (operands read once, results written once) or of arithmetic.
//   rows_bench [part of a name]
#include "harness.h"
#include "ops/all.h"

using namespace harness;
using namespace ops;

static const char* wanted = "";

static void measure(const std::string& what, const graph::Operator& op, std::vector<TensorType> operands,
                    std::vector<Fill> fills, std::vector<graph::Overlap> over = {}, double flops = 0) {
  if (what.find(wanted) == std::string::npos) return;
  for (int threads : {1, 2}) {
    Call c(backend::cpu_backend(), op, operands, fills, threads, over);
    Team team(threads);
    Stage stage;
    stage.add(c);
    // the caller's processor time is the time of the work only while it works alone
    const double t = least([&] { stage.run(team); }, threads == 1 ? 0.4 : 1.5, threads == 1);
    double bytes = 0;
    for (auto& x : operands) bytes += double(x.bytes().value);
    for (auto& x : c.outputs()) bytes += double(x.bytes().value);
    std::string blocks;
    for (int b : c.kernel().phases()) blocks += (blocks.empty() ? "" : "+") + std::to_string(b);
    std::printf("%-46s %d thr %12.3f us %8.2f GB/s", what.c_str(), threads, t * 1e6, bytes / t * 1e-9);
    if (flops > 0) std::printf(" %7.1f GFLOP/s", flops / t * 1e-9);
    std::printf("  blocks %s, scratch %ld%s\n", blocks.c_str(), long(c.kernel().workspace().value),
                c.kernel().slow() ? " SLOW" : "");
    std::fflush(stdout);
  }
}

static TensorType i32(Shape s) { return {DType::kInt32, s}; }

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{8, 10}, {64, 10}, {64, 1000}, {256, 50257}}) {
    const std::string s = std::to_string(rows) + "x" + std::to_string(cols);
    measure("softmax_cross_entropy " + s, SoftmaxCrossEntropy(), {f32({rows, cols}), i32({rows})},
            {uniform(1, -4, 4), below(2, cols)});
    measure("softmax_cross_entropy_backward " + s, SoftmaxCrossEntropyBackward(),
            {f32({rows, cols}), i32({rows}), f32({rows})}, {uniform(1, -4, 4), below(2, cols), constant(1)}, {{0, 0}});
    measure("softmax " + s, Softmax(), {f32({rows, cols})}, {uniform(1, -4, 4)});
    measure("argmax " + s, ArgMax(), {f32({rows, cols})}, {uniform(1, -4, 4)});
  }
  for (int64_t rows : {8, 256, 8192}) {
    const std::string s = std::to_string(rows) + "x768";
    measure("layer_norm " + s, LayerNorm(1e-5), {f32({rows, 768}), f32({768}), f32({768})}, {uniform(1)});
    measure("layer_norm_backward " + s, LayerNormBackward(),
            {f32({rows, 768}), f32({768}), f32({rows}), f32({rows}), f32({rows, 768})}, {uniform(1)}, {{0, 4}});
  }
  for (Shape s : {Shape{8, 112, 112, 64}, Shape{8, 56, 56, 256}, Shape{8, 28, 28, 128}, Shape{8, 14, 14, 1024},
                  Shape{8, 7, 7, 2048}, Shape{32, 16}}) {
    const Shape c{s.back()};
    measure("batch_norm " + to_string(s), BatchNorm(1e-3), {f32(s), f32(c), f32(c)}, {uniform(1)});
    measure("batch_norm_backward " + to_string(s), BatchNormBackward(1e-3), {f32(s), f32(c), f32(c), f32(c), f32(s)},
            {uniform(1), constant(1), constant(0), constant(1 - 1e-3), uniform(5)}, {{0, 4}});
  }
  using K = Reduce::Kind;
  measure("reduce sum [8]", Reduce(K::kSum, {0}, false), {f32({8})}, {uniform(1)});
  measure("reduce mean [8,7,7,2048] axes 1 2", Reduce(K::kMean, {1, 2}, false), {f32({8, 7, 7, 2048})}, {uniform(1)});
  measure("reduce sum [100352,64] axis 0", Reduce(K::kSum, {0}, false), {f32({100352, 64})}, {uniform(1)});
  measure("reduce sum [1000000,3] axis 0", Reduce(K::kSum, {0}, false), {f32({1000000, 3})}, {uniform(1)});
  measure("reduce sum [8192,768] axis 1", Reduce(K::kSum, {1}, false), {f32({8192, 768})}, {uniform(1)});
  measure("reduce sum [8192,768] all", Reduce(K::kSum, {0, 1}, false), {f32({8192, 768})}, {uniform(1)});
  measure("reduce max [8192,768] all", Reduce(K::kMax, {0, 1}, false), {f32({8192, 768})}, {uniform(1)});
  measure("reduce sum [100000,8] axis 1", Reduce(K::kSum, {1}, false), {f32({100000, 8})}, {uniform(1)});
  measure("gather 256 of [50257,768]", Gather(), {f32({50257, 768}), i32({256})}, {uniform(1), below(2, 50257)});
  measure("gather 2048 of [50257,768]", Gather(), {f32({50257, 768}), i32({2048})}, {uniform(1), below(2, 50257)});
  measure("scatter_add 256 into [50257,768]", ScatterAdd(50257), {i32({256}), f32({256, 768})},
          {below(2, 50257), uniform(1)});
  measure("scatter_add 8192 into [1000,64]", ScatterAdd(1000), {i32({8192}), f32({8192, 64})},
          {below(2, 1000), uniform(1)});
  measure("transpose [8,256,12,64] 0 2 1 3", Transpose({0, 2, 1, 3}), {f32({8, 256, 12, 64})}, {uniform(1)});
  measure("transpose [1024,1024]", Transpose({1, 0}), {f32({1024, 1024})}, {uniform(1)});
  measure("transpose [4096,4096]", Transpose({1, 0}), {f32({4096, 4096})}, {uniform(1)});
  measure("transpose [32,224,224,3] 0 3 1 2", Transpose({0, 3, 1, 2}), {f32({32, 224, 224, 3})}, {uniform(1)});
  measure("transpose [64,64]", Transpose({1, 0}), {f32({64, 64})}, {uniform(1)});
  measure("concatenate 2x [8,56,56,64] axis 3", Concatenate(3), {f32({8, 56, 56, 64}), f32({8, 56, 56, 64})},
          {uniform(1)});
  measure("slice [8,58,58,64] -> [8,56,56,64]", ops::Slice({0, 1, 1, 0}, {8, 56, 56, 64}), {f32({8, 58, 58, 64})},
          {uniform(1)});
  measure("pad [8,112,112,64] by 1", Pad({0, 1, 1, 0}, {0, 1, 1, 0}, 0), {f32({8, 112, 112, 64})}, {uniform(1)});
  measure("one_hot 64 of 1000", OneHot(1000, DType::kFloat32), {i32({64})}, {below(1, 1000)});
  for (Shape s : {Shape{1, 4, 16, 16}, Shape{4, 12, 64, 64}, Shape{1, 12, 256, 64}, Shape{1, 12, 1024, 64},
                  Shape{2, 2, 1024, 128}})
    for (bool causal : {false, true}) {
      const std::string what = to_string(s) + (causal ? " causal" : "");
      const double scores = double(s[0] * s[1]) * double(s[2]) * (causal ? double(s[2] + 1) / 2 : double(s[2]));
      const TensorType t = f32(s);
      measure("attention " + what, Attention(causal, 0.125), {t, t, t}, {uniform(1), uniform(2), uniform(3)}, {},
              scores * 4 * double(s[3]));
      measure("attention_backward " + what, AttentionBackward(causal, 0.125), {t, t, t, t, f32(s.without(-1)), t},
              {uniform(1), uniform(2), uniform(3), uniform(4), uniform(5, 3, 6), uniform(6)}, {},
              scores * 10 * double(s[3]));
    }
}
