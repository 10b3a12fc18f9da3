// Work large enough to be cut into blocks: every seam between blocks agrees with the reference, whichever thread runs
// which.
#include <doctest/doctest.h>

#include "backend/host/kernel.h"
#include "ops/all.h"
#include "support/operators.h"
#include "support/rules.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Collect;
using ops::Expression;
using ops::Extent;
using ops::Function;
using ops::Window;

namespace {
void in_blocks(const graph::Operator& op, const std::vector<Tensor>& inputs, Tolerance tolerance,
               std::vector<int> only = {}) {
  backend::Request request;
  request.threads = 2;
  for (const Tensor& t : inputs) request.inputs.push_back({t.dtype(), t.shape()});
  request.outputs = op.infer(request.inputs);
  const auto kernel = backend::host::ready(cpu_backend().make(op, request));
  int most = 0;
  for (int blocks : kernel->phases()) most = std::max(most, blocks);
  CHECK_MESSAGE((most > 1 || kernel->slow()),
                op.name() << "[" << op.attributes() << "] is run in one block: give it more work");
  check_twin(cpu_backend(), op, inputs, tolerance, std::move(only));
}
const Shape kLarge{331, 1009};
}  // namespace

TEST_CASE("cpu element-wise operators: seams between blocks agree with the reference") {
  const Tensor x = random(kLarge, 1), y = random(kLarge, 2), row = random({1009}, 3), column = random({331, 1}, 4),
               condition = random(kLarge, 5, DType::kBool, 0, 2);
  in_blocks(ops::Unary(Function::k_exp), {x}, ulps(2.5));
  in_blocks(ops::Binary(Function::k_add), {x, y}, ulps(0.5));
  in_blocks(ops::Binary(Function::k_multiply), {x, row}, ulps(0.5));
  in_blocks(ops::Binary(Function::k_subtract), {x, column}, ulps(0.5));
  in_blocks(ops::Binary(Function::k_greater), {x, y}, exact());
  in_blocks(ops::Select(), {condition, x, y}, exact());
  in_blocks(ops::Cast(DType::kBool), {x}, exact());
  in_blocks(ops::Dropout(0.5, 9), {x, values({}, {3}, DType::kInt32)}, ulps(0.5));
}

TEST_CASE("cpu fused: sums across blocks agree with the reference and repeat to the bit") {
  const Expression e{{Extent::kFull, Extent::kRow, Extent::kColumn},
                     {{Function::k_multiply, 0, 1}, {Function::k_tanh, 3}, {Function::k_add, 4, 2}},
                     {{5}, {3, Collect::kSumRows}, {3, Collect::kSumCols}, {3, Collect::kSumAll, 0.125f}}};
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{331, 1009}, {200003, 3}, {3, 200003}})
    in_blocks(ops::Fused(e, rows, cols, {type({rows, cols}), type({cols}), type({rows}), type({})}),
              {random({rows, cols}, 1), random({cols}, 2), random({rows}, 3)}, terms(double(rows * cols)));
}

TEST_CASE("cpu matmul: blocks of rows, columns and depth agree with the reference") {
  in_blocks(ops::MatMul(), {random({257, 130}, 1), random({130, 515}, 2)}, terms(130));
  in_blocks(ops::MatMul(true, false), {random({64, 784}, 1), random({64, 513}, 2)}, terms(64));
  in_blocks(ops::MatMul(false, true), {random({64, 513}, 1), random({784, 513}, 2)}, terms(513));
  in_blocks(ops::MatMul(), {random({24, 65, 64}, 1), random({24, 64, 67}, 2)}, terms(64));
  const Expression e{{Extent::kFull, Extent::kRow},
                     {{Function::k_add, 0, 1}, {Function::k_relu, 2}},
                     {{3}, {3, Collect::kSumRows}, {3, Collect::kSumAll}}};
  in_blocks(ops::MatMul(false, false, e), {random({257, 130}, 1), random({130, 515}, 2), random({515}, 3)},
            terms(130 + 257 * 515));
}

TEST_CASE("cpu convolutions and pools: seams between tiles agree with the reference") {
  const Shape x{2, 41, 43, 16}, f{3, 3, 16, 33};
  Window w{.height = 3, .width = 3};
  w.pad_same(41, 43);
  const Shape y{2, 41, 43, 33};
  in_blocks(ops::Conv2D(w), {random(x, 1), random(f, 2)}, terms(144));
  in_blocks(ops::Conv2DBackwardInput(w, 1, x), {random(y, 1), random(f, 2)}, terms(9 * 33));
  in_blocks(ops::Conv2DBackwardFilter(w, 1, f), {random(x, 1), random(y, 2)}, terms(2 * 41 * 43));
  const Window pool{.height = 2, .width = 2, .stride_h = 2, .stride_w = 2};
  in_blocks(ops::ConvPool(w, pool), {random(x, 1), random(f, 2), random({33}, 3)}, terms(145), {0});
  Window overlapping{.height = 3, .width = 3, .stride_h = 2, .stride_w = 2};
  overlapping.pad_same(120, 121);
  for (const Window& p : {pool, overlapping}) {
    const Tensor image = random({4, 120, 121, 17}, 1);
    const Tensor winners = run_operator(backend::reference_backend(), ops::MaxPool2D(p), {image})[1],
                 dy = random(winners.shape(), 2);
    in_blocks(ops::MaxPool2D(p), {image}, exact());
    in_blocks(ops::MaxPool2DBackward(p, image.shape()), {winners, dy}, scale(9));
    in_blocks(ops::AveragePool2D(p), {image}, terms(9));
    in_blocks(ops::AveragePool2DBackward(p, image.shape()), {dy}, terms(10));
  }
}

TEST_CASE("cpu optimisers: seams between blocks agree with the reference") {
  for (const ops::Rule& rule : {adam_rule(), odd_rule()}) {
    std::vector<Tensor> parameter, kernel, bias;
    for (int k = 0; k <= rule.slot_count(); ++k) {
      const auto draw = [&](const Shape& shape, uint64_t seed) {
        return k == 0 ? random(shape, seed) : random(shape, seed + uint64_t(k), DType::kFloat32, 0.1, 1);
      };
      parameter.push_back(draw(kLarge, 1)), kernel.push_back(draw({784, 257}, 11)), bias.push_back(draw({257}, 21));
    }
    const Tensor step = values({rule.scalar_count()}, std::vector<double>(size_t(rule.scalar_count()), 0.01));
    parameter.push_back(random(kLarge, 9)), parameter.push_back(step);
    in_blocks(ops::OptimizerStep(rule), parameter, scale(4));
    std::vector<Tensor> operands{random({64, 784}, 1), random({64, 257}, 2), step};
    operands.insert(operands.end(), kernel.begin(), kernel.end());
    operands.insert(operands.end(), bias.begin(), bias.end());
    in_blocks(ops::DenseUpdate(rule, true), operands, scale(68));
    in_blocks(ops::DenseBackward(rule, true), operands, scale(68 + 257));
  }
}

}  // namespace millpond::test
