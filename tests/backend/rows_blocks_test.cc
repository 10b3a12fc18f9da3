// Kernels on rows, channels and copies where one block is not enough, where values are special, and where rows are
// folded or results go past the caches. Small awkward shapes are in rows_test.cc, batch_test.cc, reduce_test.cc,
// copies_test.cc.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/host/kernel.h"
#include "ops/all.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using Kind = ops::Reduce::Kind;

namespace {

/// The cut depends on the work alone: one thread, two and three give the same bits.
void check_same_bits(const graph::Operator& op, const std::vector<Tensor>& inputs) {
  const auto one = run_operator(cpu_backend(), op, inputs);
  for (int threads : {2, 3}) {
    const auto more = run_operator(cpu_backend(), op, inputs, {.threads = threads});
    for (size_t k = 0; k < one.size(); ++k)
      CHECK_MESSAGE(std::memcmp(one[k].data(), more[k].data(), size_t(one[k].bytes().value)) == 0,
                    op.name() << " output " << k << " depends on threads");
  }
}

/// Made of several blocks, or else the test tests nothing.
void require_blocks(const graph::Operator& op, const std::vector<Tensor>& inputs) {
  backend::Request r;
  for (const Tensor& t : inputs) r.inputs.push_back({t.dtype(), t.shape()});
  r.outputs = op.infer(r.inputs);
  const auto kernel = backend::host::ready(cpu_backend().make(op, r));
  CHECK_MESSAGE(!kernel->slow(), op.name() << " is slow");
  CHECK_MESSAGE(kernel->phases()[0] > 1, op.name() << " is one block");
}

// Of a row of n logits in [-r, r]: see rows_test.cc.
double softmax_ulps(double r, int64_t n) { return 2 * r + 4 + double(n) / 2; }
}  // namespace

TEST_CASE("cpu softmax: rows of many pieces and many blocks agree with the reference") {
  for (const Shape& s : {Shape{9, 50257}, Shape{3, 131075}, Shape{2400, 65}, Shape{4001, 33}, Shape{6000, 10}}) {
    const Tensor z = random(s, 1, DType::kFloat32, -9, 9),
                 labels = random(s.without(-1), 2, DType::kInt32, 0, double(s[1]));
    const double k = softmax_ulps(9, s[1]);
    require_blocks(ops::Softmax(), {z});
    check_twin(cpu_backend(), ops::Softmax(), {z}, ulps(k));
    check_twin(cpu_backend(), ops::SoftmaxCrossEntropy(), {z, labels}, scale(k));
    check_twin(cpu_backend(), ops::SoftmaxCrossEntropyBackward(), {z, labels, random(s.without(-1), 3)}, scale(k));
    check_same_bits(ops::SoftmaxCrossEntropyBackward(), {z, labels, random(s.without(-1), 3)});
  }
}

TEST_CASE("cpu softmax: a largest logit that comes late, infinities and NaN do as in the reference") {
  for (int64_t n : {5, 16, 17, 40, 70, 5000}) {
    Tensor z = random({7, n}, 1);
    auto at = [&](int64_t r, int64_t c) -> float& { return z.values<float>()[size_t(r * n + (c < 0 ? n + c : c))]; };
    at(0, -1) = 500;                                           // every piece before it vanishes
    for (int64_t c = 0; c < n - 1; ++c) at(1, c) = -INFINITY;  // one finite logit, the last
    for (int64_t c = 0; c < n; ++c) at(2, c) = -INFINITY;      // none: NaN
    at(3, 0) = INFINITY;
    at(4, -1) = NAN;
    at(5, n / 2) = -INFINITY;
    for (int64_t c = 0; c < n; ++c) at(6, c) = float(c) * 40 / float(n) - 3e4f;
    const Tensor labels = values({7}, {0, double(n - 1), 0, 1, 2, 0, double(n + 5)}, DType::kInt32);
    // the loss of a row is a difference of logits: those of the last row are 3e4 large
    check_twin(cpu_backend(), ops::Softmax(), {z}, ulps(softmax_ulps(1, n) + 40));
    check_twin(cpu_backend(), ops::SoftmaxCrossEntropy(), {z, labels}, scale(softmax_ulps(4, n)));
    check_twin(cpu_backend(), ops::SoftmaxCrossEntropyBackward(), {z, labels, random({7}, 3)},
               scale(softmax_ulps(1, n) + 40));
  }
}

TEST_CASE("cpu layer_norm: many blocks agree with the reference and do not depend on threads") {
  for (const Shape& s : {Shape{300, 768}, Shape{5000, 17}, Shape{9, 20011}}) {
    const Tensor x = random(s, 1), gamma = random({s[1]}, 2), beta = random({s[1]}, 3), dy = random(s, 4);
    require_blocks(ops::LayerNormBackward(), {x, gamma, random({s[0]}, 5), random({s[0]}, 6), dy});
    check_twin(cpu_backend(), ops::LayerNorm(0.1), {x, gamma, beta}, scale(double(s[1]) + 16));
    const auto r = run_operator(backend::reference_backend(), ops::LayerNorm(0.1), {x, gamma, beta});
    check_twin(cpu_backend(), ops::LayerNormBackward(), {x, gamma, r[1], r[2], dy}, scale(double(s[0] + s[1]) + 16));
    check_same_bits(ops::LayerNormBackward(), {x, gamma, r[1], r[2], dy});
  }
}

TEST_CASE("cpu layer_norm: a mean far larger than the spread does not move the result") {
  Tensor x = random({4, 96}, 1);
  for (float& v : x.values<float>()) v += 3000;
  // x is exact as given; deviations are at most 1 and their sums n u, the mean costs nothing because its rest is kept
  check_twin(cpu_backend(), ops::LayerNorm(1e-3), {x, random({96}, 2), random({96}, 3)}, scale(96 + 16), {0});
}

TEST_CASE("cpu batch_norm: many blocks, few rows, folded rows agree with the reference") {
  //                         folded        folded, a rest      many rows      few rows       few channels in one row
  for (const Shape& s : {Shape{200001, 3}, Shape{4, 57, 61, 24}, Shape{7001, 65}, Shape{9, 60011},
                         Shape{23, 40, 40, 16}, Shape{200, 2048}, Shape{700007, 1}}) {
    const int64_t rows = s.without(-1).size();
    const Shape channels{s.back()};
    const Tensor x = random(s, 1), gamma = random(channels, 2), beta = random(channels, 3), dy = random(s, 4);
    require_blocks(ops::BatchNorm(0.1), {x, gamma, beta});
    // A block's sums are of at most rows/4 terms, of deviations below 2; rstd is below 3.
    const double k = double(rows) / 4 + 64;
    check_twin(cpu_backend(), ops::BatchNorm(0.1), {x, gamma, beta}, scale(k));
    const auto r = run_operator(backend::reference_backend(), ops::BatchNorm(0.1), {x, gamma, beta});
    check_twin(cpu_backend(), ops::BatchNormBackward(0.1), {x, gamma, r[1], r[2], dy}, scale(k));
    check_same_bits(ops::BatchNorm(0.1), {x, gamma, beta});
    check_same_bits(ops::BatchNormBackward(0.1), {x, gamma, r[1], r[2], dy});
  }
}

TEST_CASE("cpu batch_norm: an outlier in the first row and a large mean do not spoil the variance") {
  for (int64_t channels : {5, 64}) {
    Tensor x = random({20000, channels}, 1);
    for (float& v : x.values<float>()) v += 1000;
    x.values<float>()[0] = 5000;
    // deviations of 1 known to 1000 u: the blocks' means are added in double, so only sums of 2,500 deviations at most
    // remain
    check_twin(cpu_backend(), ops::BatchNorm(1e-3), {x, random({channels}, 2), random({channels}, 3)}, scale(2500),
               {0, 2});
  }
}

TEST_CASE("cpu reduce: every mix of axes with work for many blocks agrees with the reference") {
  for (const Shape& s : {Shape{300, 40, 60}, Shape{2, 300000, 1}, Shape{600007, 1, 1}, Shape{3, 5, 70001},
                         Shape{3, 70001, 5}, Shape{70001, 3, 5}, Shape{31, 200, 129}})
    for (int mask = 0; mask < 8; ++mask) {
      std::vector<int> axes;
      double n = 1;
      for (int i = 0; i < 3; ++i)
        if (mask >> i & 1) axes.push_back(i), n *= double(s[i]);
      const Tensor x = random(s, 7);
      for (Kind k : {Kind::kSum, Kind::kMean, Kind::kMax})
        check_twin(cpu_backend(), ops::Reduce(k, axes, mask % 2), {x}, k == Kind::kMax ? exact() : terms(n));
      check_same_bits(ops::Reduce(Kind::kSum, axes, false), {x});
    }
  const Tensor x = random({7, 6, 5, 4, 3, 2}, 8);
  for (int mask = 0; mask < 64; ++mask) {
    std::vector<int> axes;
    for (int i = 0; i < 6; ++i)
      if (mask >> i & 1) axes.push_back(i);
    for (Kind k : {Kind::kSum, Kind::kMax})
      check_twin(cpu_backend(), ops::Reduce(k, axes, true), {x}, k == Kind::kMax ? exact() : terms(5040));
  }
}

TEST_CASE("cpu reduce: the largest of values with a NaN among them is NaN wherever it lies") {
  for (int64_t where : {0, 5, 16, 39, 1000, 4199})
    for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {0, 1}}) {
      Tensor x = random({70, 60}, 1);
      x.values<float>()[size_t(where)] = NAN;
      x.values<float>()[size_t((where + 61) % 4200)] = -INFINITY;
      check_twin(cpu_backend(), ops::Reduce(Kind::kMax, axes, false), {x}, exact());
    }
}

TEST_CASE("cpu argmax: ties, infinities and NaN do as in the reference, over many blocks") {
  Tensor x = values({6, 20}, std::vector<double>(120, 1.0));
  float* const v = x.values<float>().data();
  v[20] = v[37] = 5;
  for (int i = 40; i < 60; ++i) v[i] = -INFINITY;
  v[60] = NAN, v[65] = 9;
  v[80 + 3] = NAN, v[80 + 18] = 2, v[80 + 19] = 2;
  v[100] = -0.f, v[101] = 0.f;
  for (int i = 102; i < 120; ++i) v[i] = -1;
  check_twin(cpu_backend(), ops::ArgMax(), {x}, exact());
  for (const Shape& s : {Shape{40, 20011}, Shape{9000, 10}}) {
    require_blocks(ops::ArgMax(), {random(s, 1)});
    check_twin(cpu_backend(), ops::ArgMax(), {random(s, 1)}, exact());
  }
}

TEST_CASE("cpu transpose: every order of four dimensions, tiles and their edges, many blocks") {
  for (const Shape& s : {Shape{3, 17, 5, 33}, Shape{2, 16, 1, 48}, Shape{4, 70, 6, 130}, Shape{1, 1, 300, 700}}) {
    const Tensor x = random(s, 1);
    std::vector<int> order{0, 1, 2, 3};
    do check_twin(cpu_backend(), ops::Transpose(order), {x}, exact());
    while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_CASE("cpu gather and scatter_add: tables cut by rows and by columns, rows added in order") {
  for (const auto& [count, width, n] :
       {std::array<int64_t, 3>{3000, 768, 40}, {37, 300, 4000}, {5, 3, 100000}, {20000, 17, 500}, {1, 64, 9000}}) {
    const Tensor index = random({n}, 1, DType::kInt32, -3, double(count) + 3), rows = random({n, width}, 2);
    check_twin(cpu_backend(), ops::Gather(), {random({count, width}, 3), index}, exact());
    check_twin(cpu_backend(), ops::ScatterAdd(count), {index, rows}, exact());
  }
  check_twin(cpu_backend(), ops::OneHot(1000, DType::kFloat32), {random({700}, 4, DType::kInt64, -2, 1002)}, exact());
  for (DType t : kAllDTypes)
    check_twin(cpu_backend(), ops::OneHot(7, t), {random({700}, 4, DType::kUInt8, 0, 9)}, exact());
}

TEST_CASE("cpu copies: results larger than a cache go past it and are right at every edge") {
  // 16 MiB and more of floats; rows that do and do not begin on a vector boundary
  const Tensor x = random({4099, 1040}, 1);
  check_twin(cpu_backend(), ops::Transpose({1, 0}), {x}, exact());
  check_twin(cpu_backend(), ops::Slice({1, 3}, {4097, 1033}), {x}, exact());
  check_twin(cpu_backend(), ops::Pad({1, 3}, {2, 5}, 0.5), {x}, exact());
  check_twin(cpu_backend(), ops::Concatenate(1), {x, random({4099, 7}, 2)}, exact());
  check_twin(cpu_backend(), ops::Concatenate(0), {x, random({3, 1040}, 2)}, exact());
  check_twin(cpu_backend(), ops::ScatterAdd(4111), {random({50}, 3, DType::kInt32, 0, 4111), random({50, 1040}, 4)},
             exact());
  const Tensor y = random({4112, 1040}, 1);
  check_twin(cpu_backend(), ops::Transpose({1, 0}), {y}, exact());
  check_twin(cpu_backend(), ops::BatchNorm(0.1), {y, random({1040}, 2), random({1040}, 3)}, scale(4112 / 4.0 + 64));
}

TEST_CASE("cpu attention: tiles, their edges and widths agree with the reference") {
  for (const Shape& s : {Shape{1, 3, 64, 64}, Shape{2, 2, 63, 64}, Shape{1, 2, 129, 33}, Shape{1, 4, 200, 80},
                         Shape{3, 1, 16, 3}, Shape{1, 2, 257, 16}, Shape{1, 1, 2, 1}})
    for (bool causal : {false, true}) {
      const Tensor q = random(s, 1, DType::kFloat32, -2, 2), k = random(s, 2, DType::kFloat32, -2, 2), v = random(s, 3),
                   dout = random(s, 4);
      const double width = double(s[3]), length = double(s[2]), factor = 1 / std::sqrt(width);
      // scores are sums of `width` products of at most 4 factor; then a softmax over `length`, then a sum over it
      const Tolerance t = scale(16 * width + 2 * length + 16);
      check_twin(cpu_backend(), ops::Attention(causal, factor), {q, k, v}, t);
      const auto r = run_operator(backend::reference_backend(), ops::Attention(causal, factor), {q, k, v});
      check_twin(cpu_backend(), ops::AttentionBackward(causal, factor), {q, k, v, r[0], r[1], dout}, t);
      check_same_bits(ops::AttentionBackward(causal, factor), {q, k, v, r[0], r[1], dout});
    }
}

TEST_CASE("cpu attention: large scores neither overflow nor vanish") {
  const Shape s{1, 2, 70, 8};
  const Tensor q = random(s, 1, DType::kFloat32, -40, 40), k = random(s, 2, DType::kFloat32, -40, 40), v = random(s, 3);
  // scores up to 12,800, known to 8 u of that: weights to e^(8 * 12,800 u)
  check_twin(cpu_backend(), ops::Attention(true, 1.0), {q, k, v}, scale(8 * 12800.0), {0});
  check_twin(cpu_backend(), ops::Attention(false, 1.0), {q, k, v}, scale(16), {1});
}

}  // namespace millpond::test
