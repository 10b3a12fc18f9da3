#include "ops/matmul.h"

#include "ops/binary.h"
#include "ops/check.h"
#include "ops/reshape.h"

namespace millpond::ops {

std::string MatMul::attributes() const {
  std::string text = transpose_a ? "transpose_a" : "";
  if (transpose_b) text += text.empty() ? "transpose_b" : " transpose_b";
  if (!epilogue.empty()) text += format("{}epilogue: {}", text.empty() ? "" : " ", to_string(epilogue));
  return text;
}

TensorType MatMul::product(const TensorType& a, const TensorType& b) const {
  require_floating("matmul", "a", a);
  if (a.dtype != b.dtype)
    throw Error(Code::kDType, format("matmul: a is {}, but b is {}", to_string(a), to_string(b)))
        .hint("cast one of them");
  if (a.shape.rank() < 2 || b.shape.rank() < 2)
    throw Error(Code::kShape,
                format("matmul: a is {} and b is {}, but both need at least 2 dimensions", a.shape, b.shape))
        .hint("reshape a vector to [1, n] or [n, 1]");
  const int64_t rows = a.shape[transpose_a ? -1 : -2], inner = a.shape[transpose_a ? -2 : -1];
  const int64_t other = b.shape[transpose_b ? -1 : -2], cols = b.shape[transpose_b ? -2 : -1];
  if (inner != other)
    throw Error(Code::kShape,
                format("matmul: a {}{} has {} columns, but b {}{} has {} rows", a.shape,
                       transpose_a ? " transposed" : "", inner, b.shape, transpose_b ? " transposed" : "", other))
        .hint(format("give b {} rows", inner));
  Shape lead;
  try {
    lead = broadcast(a.shape.slice(0, a.shape.rank() - 2), b.shape.slice(0, b.shape.rank() - 2));
  } catch (const Error&) {
    throw Error(Code::kShape,
                format("matmul: the leading dimensions of a {} and b {} do not broadcast", a.shape, b.shape))
        .hint("make them equal, or one of them 1");
  }
  std::vector<int64_t> dims(lead.begin(), lead.end());
  dims.insert(dims.end(), {rows, cols});
  return {a.dtype, Shape(dims)};
}

std::vector<TensorType> MatMul::infer(std::span<const TensorType> inputs) const {
  MP_ASSERT(inputs.size() >= 2 && (inputs.size() == 2 || !epilogue.empty()));
  const TensorType c = product(inputs[0], inputs[1]);
  if (epilogue.empty()) return {c};
  return infer_epilogue("matmul", epilogue, c, inputs.subspan(2));
}

std::vector<Value> MatMul::backward(Builder& b, const Node& node, std::span<const Value> dys) const {
  if (!epilogue.empty()) return Operator::backward(b, node, dys);
  if (!dys[0]) return no_gradients(node);
  const Value x = node.input(0), y = node.input(1), dz = dys[0];
  // dx = dz y^T and dy = x^T dz; where an operand is stored transposed, so is its gradient
  const Value dx = transpose_a ? matmul(b, y, dz, transpose_b, true) : matmul(b, dz, y, false, !transpose_b);
  Value dy;
  if (x.shape().rank() > 2 && y.shape().rank() == 2 && !transpose_a) {
    // one product over all rows of the batch, instead of one for each member of it and a sum
    const Value rows = reshape(b, x, {x.shape().size() / std::max<int64_t>(1, x.shape().back()), x.shape().back()});
    const Value drows = reshape(b, dz, {rows.shape()[0], dz.shape().back()});
    dy = transpose_b ? matmul(b, drows, rows, true, false) : matmul(b, rows, drows, true, false);
  } else {
    dy = transpose_b ? matmul(b, dz, x, true, transpose_a) : matmul(b, x, dz, !transpose_a, false);
  }
  return {sum_to(b, dx, x.shape()), sum_to(b, dy, y.shape())};
}

double MatMul::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  const double size = double(product(inputs[0], inputs[1]).shape.size());
  return size * (2.0 * double(inputs[0].shape[transpose_a ? -2 : -1]) + double(epilogue.code.size()));
}

Value matmul(Builder& b, Value x, Value y, bool transpose_x, bool transpose_y) {
  return b.add(std::make_shared<MatMul>(transpose_x, transpose_y), {x, y});
}

}  // namespace millpond::ops
