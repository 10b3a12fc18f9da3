#include <doctest/doctest.h>

#include "ops/matmul.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Collect;
using ops::Expression;
using ops::Extent;
using ops::Function;

namespace {
const Expression kBiasRelu{{Extent::kFull, Extent::kRow}, {{Function::k_add, 0, 1}, {Function::k_relu, 2}}, {{3}}};
}

TEST_CASE("cpu matmul: agrees with the reference for all sizes and transpositions") {
  const int64_t sizes[] = {0, 1, 3, 8, 17, 64, 65, 130};
  for (int64_t m : sizes)
    for (int64_t n : sizes)
      for (int64_t k : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{16}, int64_t{100}})
        for (int flags = 0; flags < 4; ++flags) {
          if (m * n * k > 200000 && flags == 3) continue;
          const bool ta = flags & 1, tb = flags & 2;
          check_twin(cpu_backend(), ops::MatMul(ta, tb),
                     {random(ta ? Shape{k, m} : Shape{m, k}, 1), random(tb ? Shape{n, k} : Shape{k, n}, 2)},
                     terms(double(k)));
        }
}

TEST_CASE("cpu matmul: long and large products") {
  check_twin(cpu_backend(), ops::MatMul(), {random({32, 784}, 1), random({784, 300}, 2)}, terms(784));
  check_twin(cpu_backend(), ops::MatMul(true, false), {random({300, 129}, 1), random({300, 257}, 2)}, terms(300));
  check_twin(cpu_backend(), ops::MatMul(false, true), {random({33, 515}, 1), random({127, 515}, 2)}, terms(515));
  check_twin(cpu_backend(), ops::MatMul(), {random({1, 5000}, 1), random({5000, 1}, 2)}, terms(5000));
  check_twin(cpu_backend(), ops::MatMul(), {random({33, 300}, 1), random({300, 643}, 2)}, terms(300));  // b is copied
}

TEST_CASE("cpu matmul: a long inner dimension is split") {
  for (int64_t cols : {32, 50, 64, 131})
    for (int64_t inner : {2048, 2500})
      for (bool ending : {false, true}) {
        std::vector<Tensor> operands{random({19, inner}, 1), random({inner, cols}, 2)};
        if (ending) operands.push_back(random({cols}, 3));
        check_twin(cpu_backend(), ops::MatMul(false, false, ending ? kBiasRelu : Expression{}), operands,
                   terms(double(inner) + 1));
      }
}

TEST_CASE("cpu matmul: leading dimensions broadcast") {
  const std::pair<Shape, Shape> batches[] = {
      {{3, 5, 7}, {3, 7, 9}}, {{3, 5, 7}, {7, 9}}, {{5, 7}, {3, 7, 9}}, {{2, 1, 5, 7}, {3, 7, 9}}, {{0, 5, 7}, {7, 9}}};
  for (const auto& [a, b] : batches) check_twin(cpu_backend(), ops::MatMul(), {random(a, 1), random(b, 2)}, terms(7));
}

TEST_CASE("cpu matmul: products in float64, bfloat16 and float16, transposed or not, in batches and past a chunk") {
  for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {5, 7, 6}, {1, 130, 3}, {67, 33, 129}, {130, 140, 1030}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const Shape a = ta ? Shape{2, k, m} : Shape{2, m, k}, b = tb ? Shape{n, k} : Shape{k, n};
        const auto of = [&](DType t) { return std::vector{random(a, 1, t), random(b, 2, t)}; };
        check_twin(cpu_backend(), ops::MatMul(ta, tb), of(DType::kFloat64), terms(k));
        for (const DType t : {DType::kBFloat16, DType::kFloat16}) {
          // summed up in float32 and rounded once: a tie may fall to the other side
          const Tensor got = run_operator(cpu_backend(), ops::MatMul(ta, tb), of(t), {.threads = 3})[0];
          const Tensor want = run_operator(backend::reference_backend(), ops::MatMul(ta, tb), of(t))[0];
          const double unit = t == DType::kBFloat16 ? 0x1p-8 : 0x1p-11;
          double worst = 0;
          for (int64_t i = 0; i < want.size(); ++i)
            worst = std::max(worst, std::abs(got.at(i) - want.at(i)) / (2 * unit * std::abs(want.at(i)) + 1e-6 * k));
          CHECK(worst <= 1);
        }
      }
}

TEST_CASE("cpu matmul: an epilogue of bias and relu, with every extent and every kind of sum") {
  for (const auto& [m, n, k] :
       {std::tuple{1, 1, 1}, {8, 8, 4}, {7, 17, 5}, {33, 64, 20}, {64, 130, 100}, {0, 5, 3}, {300, 10, 7}}) {
    const Tensor a = random({m, k}, 1), b = random({k, n}, 2), row = random({n}, 3);
    // the sum of terms on absolute values bounds relu's result too: relu is never steeper than 1
    check_twin(cpu_backend(), ops::MatMul(false, false, kBiasRelu), {a, b, row}, terms(k + 1));
    const Expression all{
        {Extent::kFull, Extent::kRow, Extent::kColumn, Extent::kScalar, Extent::kFull},
        {{Function::k_add, 0, 1}, {Function::k_add, 5, 2}, {Function::k_add, 6, 3}, {Function::k_add, 7, 4}},
        {{8}, {0}, {8, Collect::kSumRows}, {8, Collect::kSumCols, 0.5f}, {8, Collect::kSumAll}}};
    check_twin(cpu_backend(), ops::MatMul(false, false, all),
               {a, b, row, random({m}, 4), random({}, 5), random({m, n}, 6)}, terms(k + 4 + m * n));
    check_twin(cpu_backend(), ops::MatMul(true, true, kBiasRelu), {random({k, m}, 1), random({n, k}, 2), row},
               terms(k + 1));
  }
}

}  // namespace millpond::test
