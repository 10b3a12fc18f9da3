// ops: functions of eager tensors, by the names of keras.ops. Each is computed when it is called, and has a gradient
// where mathematics has one.
//
//   EagerTensor p = ops::softmax(ops::matmul(x, w) + b);
//   EagerTensor loss = -ops::mean(ops::log(ops::take(p, 0, 1)));
//
// Functions of fractions (exp, mean, ...) make float32 of whole numbers. Axes may be negative; none means all. Memory:
// the result, from the pool of millpond/eager.h; reshape, squeeze and expand_dims share the bytes of their operand.
#pragma once
#include "millpond/eager.h"

namespace millpond::ops {

// Made of numbers.
EagerTensor zeros(Shape shape, DType dtype = DType::kFloat32);
EagerTensor ones(Shape shape, DType dtype = DType::kFloat32);
EagerTensor full(Shape shape, double value, DType dtype = DType::kFloat32);
EagerTensor zeros_like(const EagerTensor& x);
EagerTensor ones_like(const EagerTensor& x);
EagerTensor full_like(const EagerTensor& x, double value);
/// start, start + step, ... below stop; int32.
EagerTensor arange(int64_t start, int64_t stop, int64_t step = 1);
/// From the stream of set_random_seed.
EagerTensor uniform(Shape shape, double minval = 0, double maxval = 1, DType dtype = DType::kFloat32);
EagerTensor normal(Shape shape, double mean = 0, double stddev = 1, DType dtype = DType::kFloat32);

// Element by element, of one.
EagerTensor cast(const EagerTensor& x, DType dtype);
EagerTensor negative(const EagerTensor& x);
EagerTensor exp(const EagerTensor& x);
EagerTensor log(const EagerTensor& x);
EagerTensor log1p(const EagerTensor& x);
EagerTensor sqrt(const EagerTensor& x);
EagerTensor rsqrt(const EagerTensor& x);
EagerTensor square(const EagerTensor& x);
EagerTensor abs(const EagerTensor& x);
EagerTensor sign(const EagerTensor& x);
EagerTensor tanh(const EagerTensor& x);
EagerTensor sigmoid(const EagerTensor& x);
EagerTensor relu(const EagerTensor& x);
EagerTensor erf(const EagerTensor& x);
EagerTensor logical_not(const EagerTensor& x);
EagerTensor clip(const EagerTensor& x, double least, double most);

// Element by element, of two, of which one may be a number: ops::maximum(x, 0).
#define MP_OPERATION(name)                                      \
  EagerTensor name(const EagerTensor& x, const EagerTensor& y); \
  EagerTensor name(const EagerTensor& x, Numeral y);            \
  EagerTensor name(Numeral x, const EagerTensor& y);
MP_OPERATION(maximum)
MP_OPERATION(minimum)
MP_OPERATION(power)
MP_OPERATION(floor_divide)
MP_OPERATION(logical_and)
MP_OPERATION(logical_or)
#undef MP_OPERATION
/// x where the condition holds, y elsewhere.
EagerTensor where(const EagerTensor& condition, const EagerTensor& x, const EagerTensor& y);
EagerTensor where(const EagerTensor& condition, const EagerTensor& x, Numeral y);
EagerTensor where(const EagerTensor& condition, Numeral x, const EagerTensor& y);

// Over axes.
EagerTensor sum(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);
EagerTensor mean(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);
EagerTensor var(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);
EagerTensor max(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);
EagerTensor min(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);
EagerTensor all(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);
EagerTensor any(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);
/// Along one axis, the first of equals; int32.
EagerTensor argmax(const EagerTensor& x, int axis = -1);
EagerTensor argmin(const EagerTensor& x, int axis = -1);
/// Square root of the sum of squares of all elements.
EagerTensor norm(const EagerTensor& x);
EagerTensor softmax(const EagerTensor& x, int axis = -1);
EagerTensor log_softmax(const EagerTensor& x, int axis = -1);
EagerTensor logsumexp(const EagerTensor& x, std::vector<int> axes = {}, bool keepdims = false);

/// Over the last two dimensions; a vector counts as a row on the left and as a column on the right.
EagerTensor matmul(const EagerTensor& x, const EagerTensor& y);

// Shapes. One dimension of `reshape` may be -1: what is left.
EagerTensor reshape(const EagerTensor& x, Shape shape);
EagerTensor squeeze(const EagerTensor& x, std::vector<int> axes = {});
EagerTensor expand_dims(const EagerTensor& x, int axis);
/// Without an order: the last dimension first.
EagerTensor transpose(const EagerTensor& x, std::vector<int> axes = {});
EagerTensor broadcast_to(const EagerTensor& x, Shape shape);
EagerTensor concatenate(const EagerTensors& xs, int axis = 0);
EagerTensor stack(const EagerTensors& xs, int axis = 0);
EagerTensor flip(const EagerTensor& x, int axis);
/// Elements [start, start + size) of every dimension.
EagerTensor slice(const EagerTensor& x, std::vector<int64_t> starts, Shape sizes);
/// The slices of x along an axis that whole numbers name. Throws Error(kValue) for one that is not there.
EagerTensor take(const EagerTensor& x, const EagerTensor& indices, int axis = 0);
EagerTensor one_hot(const EagerTensor& x, int64_t classes, DType dtype = DType::kFloat32);

}  // namespace millpond::ops
