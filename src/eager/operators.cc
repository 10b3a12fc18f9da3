// Operators and functions of eager tensors: each casts its operands to the dtype in which they meet, and applies the
// operator of ops/ that computes it.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/assert.h"
#include "base/format.h"
#include "base/random.h"
#include "base/seed.h"
#include "base/with_type.h"
#include "eager/context.h"
#include "eager/promote.h"
#include "eager/range.h"
#include "millpond/gradient_tape.h"
#include "millpond/ops.h"
#include "ops/argmax.h"
#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/cast.h"
#include "ops/concatenate.h"
#include "ops/gather.h"
#include "ops/matmul.h"
#include "ops/one_hot.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"

namespace millpond {

using eager::apply;
using eager::Op;
using eager::outside;
using eager::promote;
using eager::Ref;
using ops::Function;

namespace {

// Operators without attributes beside their function are made once.
template <class Made>
const Op& op_of(Function f) {
  static const auto all = [] {
    std::array<Op, size_t(Function::k_dropout) + 1> made;
    for (size_t i = 0; i < made.size(); ++i) made[i] = std::make_shared<Made>(Function(i));
    return made;
  }();
  return all[size_t(f)];
}

Ref cast_to(const Ref& x, DType dtype) {
  return x->type.dtype == dtype ? x : apply(std::make_shared<ops::Cast>(dtype), {x});
}
Ref unary(Function f, const Ref& x) { return apply(op_of<ops::Unary>(f), {x}); }
Ref binary(Function f, const Ref& x, const Ref& y) { return apply(op_of<ops::Binary>(f), {x, y}); }
Ref number(Numeral n, DType dtype) { return eager::filled({dtype, {}}, n.value()); }
Ref reduced(ops::Reduce::Kind kind, const Ref& x, std::vector<int> axes, bool keepdims, const char* what) {
  const int rank = x->type.shape.rank();
  if (axes.empty())
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  for (int& a : axes) {
    if (a < -rank || a >= rank)
      throw Error(Code::kShape, format("{}: axis {} of a tensor of shape {}", what, a, x->type.shape))
          .hint(format("it has {} dimensions", rank));
    a += a < 0 ? rank : 0;
  }
  std::sort(axes.begin(), axes.end());
  return apply(std::make_shared<ops::Reduce>(kind, std::move(axes), keepdims), {x});
}
Ref reshaped(const Ref& x, const Shape& shape) {
  return x->type.shape == shape ? x : apply(std::make_shared<ops::Reshape>(shape), {x});
}
Ref not_of(const Ref& x) { return binary(Function::k_equal, x, eager::filled({x->type.dtype, {}}, 0)); }
int axis_of(const Ref& x, int axis, const char* what, int more = 0) {
  const int rank = x->type.shape.rank() + more;
  if (axis < -rank || axis >= rank)
    throw Error(Code::kShape, format("{}: axis {} of a tensor of shape {}", what, axis, x->type.shape))
        .hint(format("it has {} dimensions", x->type.shape.rank()));
  return axis < 0 ? axis + rank : axis;
}

// What the signs and names of two operands mean, once both have one dtype.
enum class Two : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kFloorDivide,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kXor,
  kMaximum,
  kMinimum,
  kPower,
  kLogicalAnd,
  kLogicalOr
};

constexpr const char* kTwoNames[] = {
    "+",  "-",  "*", "/", "%", "floor_divide", "<",       "<=",    ">",           ">=",
    "==", "!=", "&", "|", "^", "maximum",      "minimum", "power", "logical_and", "logical_or"};

DType computed_in(Two what, DType meet) {
  switch (what) {
    case Two::kDivide:
    case Two::kPower:
      return eager::floating(meet);
    case Two::kLogicalAnd:
    case Two::kLogicalOr:
      return DType::kBool;
    case Two::kAdd:
    case Two::kSubtract:
    case Two::kMultiply:
    case Two::kRemainder:
    case Two::kFloorDivide:
      return meet == DType::kBool ? DType::kInt32 : meet;
    default:
      return meet;
  }
}

Ref computed(Two what, const Ref& x, const Ref& y) {
  switch (what) {
    case Two::kAdd:
      return binary(Function::k_add, x, y);
    case Two::kSubtract:
      return binary(Function::k_subtract, x, y);
    case Two::kMultiply:
      return binary(Function::k_multiply, x, y);
    case Two::kDivide:
      return binary(Function::k_divide, x, y);
    case Two::kRemainder:
      return binary(Function::k_remainder, x, y);
    case Two::kFloorDivide:
      return binary(Function::k_floor_divide, x, y);
    case Two::kLess:
      return binary(Function::k_greater, y, x);
    case Two::kLessEqual:
      return binary(Function::k_greater_equal, y, x);
    case Two::kGreater:
      return binary(Function::k_greater, x, y);
    case Two::kGreaterEqual:
      return binary(Function::k_greater_equal, x, y);
    case Two::kEqual:
      return binary(Function::k_equal, x, y);
    case Two::kNotEqual:
      return not_of(binary(Function::k_equal, x, y));
    case Two::kAnd:
    case Two::kLogicalAnd:
      return binary(Function::k_bitwise_and, x, y);
    case Two::kOr:
    case Two::kLogicalOr:
      return binary(Function::k_bitwise_or, x, y);
    case Two::kXor:
      return binary(Function::k_bitwise_xor, x, y);
    case Two::kMaximum:
      return binary(Function::k_maximum, x, y);
    case Two::kMinimum:
      return binary(Function::k_minimum, x, y);
    case Two::kPower:
      return binary(Function::k_power, x, y);
  }
  return nullptr;
}

EagerTensor two(Two what, const EagerTensor& a, const EagerTensor& b) {
  const Ref &x = eager::need(a, kTwoNames[int(what)]), &y = eager::need(b, kTwoNames[int(what)]);
  const DType meet = promote(x->type.dtype, y->type.dtype), in = computed_in(what, meet);
  const Ref result = computed(what, cast_to(x, in), cast_to(y, in));
  return outside(what == Two::kPower && is_integer(meet) ? cast_to(result, meet) : result);
}
EagerTensor two(Two what, const EagerTensor& a, Numeral b) {
  const Ref& x = eager::need(a, kTwoNames[int(what)]);
  const DType meet = promote(x->type.dtype, b.kind()), in = computed_in(what, meet);
  const Ref result = computed(what, cast_to(x, in), number(b, in));
  return outside(what == Two::kPower && is_integer(meet) ? cast_to(result, meet) : result);
}
EagerTensor two(Two what, Numeral a, const EagerTensor& b) {
  const Ref& y = eager::need(b, kTwoNames[int(what)]);
  const DType meet = promote(y->type.dtype, a.kind()), in = computed_in(what, meet);
  const Ref result = computed(what, number(a, in), cast_to(y, in));
  return outside(what == Two::kPower && is_integer(meet) ? cast_to(result, meet) : result);
}

EagerTensor of_fractions(Function f, const EagerTensor& x, const char* what) {
  const Ref& r = eager::need(x, what);
  return outside(unary(f, cast_to(r, eager::floating(r->type.dtype))));
}
EagerTensor of_numbers(Function f, const EagerTensor& x, const char* what) {
  const Ref& r = eager::need(x, what);
  return outside(unary(f, r->type.dtype == DType::kBool ? cast_to(r, DType::kInt32) : r));
}

}  // namespace

#define MP_OPERATOR(sign, what)                                                                          \
  EagerTensor operator sign(const EagerTensor& x, const EagerTensor& y) { return two(Two::what, x, y); } \
  EagerTensor operator sign(const EagerTensor& x, Numeral y) { return two(Two::what, x, y); }            \
  EagerTensor operator sign(Numeral x, const EagerTensor& y) { return two(Two::what, x, y); }
MP_OPERATOR(+, kAdd)
MP_OPERATOR(-, kSubtract)
MP_OPERATOR(*, kMultiply)
MP_OPERATOR(/, kDivide)
MP_OPERATOR(%, kRemainder)
MP_OPERATOR(<, kLess)
MP_OPERATOR(<=, kLessEqual)
MP_OPERATOR(>, kGreater)
MP_OPERATOR(>=, kGreaterEqual)
MP_OPERATOR(==, kEqual)
MP_OPERATOR(!=, kNotEqual)
MP_OPERATOR(&, kAnd)
MP_OPERATOR(|, kOr)
MP_OPERATOR(^, kXor)
#undef MP_OPERATOR
EagerTensor operator-(const EagerTensor& x) { return of_numbers(Function::k_negate, x, "-"); }
EagerTensor operator~(const EagerTensor& x) {
  const Ref& r = eager::need(x, "~");
  if (r->type.dtype == DType::kBool) return outside(not_of(r));
  if (!is_integer(r->type.dtype))
    throw Error(Code::kDType, format("~: x is {}", to_string(r->type))).hint("it is for bool and whole numbers");
  return outside(
      binary(Function::k_bitwise_xor, r,
             eager::filled({r->type.dtype, {}},
                           is_signed(r->type.dtype) ? -1 : std::exp2(8 * size_of(r->type.dtype).value) - 1)));
}

namespace ops {

EagerTensor full(Shape shape, double value, DType dtype) { return outside(eager::filled({dtype, shape}, value)); }
EagerTensor zeros(Shape shape, DType dtype) { return full(shape, 0, dtype); }
EagerTensor ones(Shape shape, DType dtype) { return full(shape, 1, dtype); }
EagerTensor full_like(const EagerTensor& x, double value) { return full(x.shape(), value, x.dtype()); }
EagerTensor zeros_like(const EagerTensor& x) { return full_like(x, 0); }
EagerTensor ones_like(const EagerTensor& x) { return full_like(x, 1); }

EagerTensor arange(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) throw Error(Code::kValue, "arange: the step is 0");
  std::vector<int32_t> all;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) all.push_back(int32_t(i));
  return EagerTensor::of(all, {int64_t(all.size())});
}

namespace {
template <class Draw>
EagerTensor drawn(Shape shape, DType dtype, const char* what, Draw draw) {
  if (!is_floating(dtype)) throw Error(Code::kDType, format("{}: random numbers of {}", what, dtype)).hint("cast them");
  Tensor host(DType::kFloat64, shape);
  Random random(draw_seed());
  for (double& v : host.values<double>()) v = draw(random);
  return EagerTensor(dtype == DType::kFloat64 ? host : host.astype(dtype));
}
}  // namespace
EagerTensor uniform(Shape shape, double minval, double maxval, DType dtype) {
  return drawn(shape, dtype, "uniform", [&](Random& r) { return minval + (maxval - minval) * r.uniform(); });
}
EagerTensor normal(Shape shape, double mean, double stddev, DType dtype) {
  return drawn(shape, dtype, "normal", [&](Random& r) { return mean + stddev * r.normal(); });
}

EagerTensor cast(const EagerTensor& x, DType dtype) { return outside(cast_to(eager::need(x, "cast"), dtype)); }
EagerTensor negative(const EagerTensor& x) { return -x; }
#define MP_FRACTIONS(name) \
  EagerTensor name(const EagerTensor& x) { return of_fractions(Function::k_##name, x, #name); }
MP_FRACTIONS(exp)
MP_FRACTIONS(log)
MP_FRACTIONS(log1p)
MP_FRACTIONS(sqrt)
MP_FRACTIONS(rsqrt)
MP_FRACTIONS(tanh)
MP_FRACTIONS(sigmoid)
MP_FRACTIONS(erf)
#undef MP_FRACTIONS
#define MP_NUMBERS(name) \
  EagerTensor name(const EagerTensor& x) { return of_numbers(Function::k_##name, x, #name); }
MP_NUMBERS(square)
MP_NUMBERS(abs)
MP_NUMBERS(sign)
MP_NUMBERS(relu)
#undef MP_NUMBERS
EagerTensor logical_not(const EagerTensor& x) {
  return outside(not_of(cast_to(eager::need(x, "logical_not"), DType::kBool)));
}
EagerTensor clip(const EagerTensor& x, double least, double most) { return minimum(maximum(x, least), most); }

#define MP_OPERATION(name, what)                                                                \
  EagerTensor name(const EagerTensor& x, const EagerTensor& y) { return two(Two::what, x, y); } \
  EagerTensor name(const EagerTensor& x, Numeral y) { return two(Two::what, x, y); }            \
  EagerTensor name(Numeral x, const EagerTensor& y) { return two(Two::what, x, y); }
MP_OPERATION(maximum, kMaximum)
MP_OPERATION(minimum, kMinimum)
MP_OPERATION(power, kPower)
MP_OPERATION(floor_divide, kFloorDivide)
MP_OPERATION(logical_and, kLogicalAnd)
MP_OPERATION(logical_or, kLogicalOr)
#undef MP_OPERATION

namespace {
EagerTensor selected(const EagerTensor& condition, const Ref& x, const Ref& y) {
  return outside(apply(std::make_shared<Select>(), {cast_to(eager::need(condition, "where"), DType::kBool), x, y}));
}
}  // namespace
EagerTensor where(const EagerTensor& condition, const EagerTensor& a, const EagerTensor& b) {
  const Ref &x = eager::need(a, "where"), &y = eager::need(b, "where");
  const DType meet = promote(x->type.dtype, y->type.dtype);
  return selected(condition, cast_to(x, meet), cast_to(y, meet));
}
EagerTensor where(const EagerTensor& condition, const EagerTensor& a, Numeral y) {
  const Ref& x = eager::need(a, "where");
  const DType meet = promote(x->type.dtype, y.kind());
  return selected(condition, cast_to(x, meet), number(y, meet));
}
EagerTensor where(const EagerTensor& condition, Numeral x, const EagerTensor& b) {
  const Ref& y = eager::need(b, "where");
  const DType meet = promote(y->type.dtype, x.kind());
  return selected(condition, number(x, meet), cast_to(y, meet));
}

EagerTensor sum(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  const Ref& r = eager::need(x, "sum");
  return outside(
      reduced(Reduce::Kind::kSum, cast_to(r, eager::summed(r->type.dtype)), std::move(axes), keepdims, "sum"));
}
EagerTensor mean(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  const Ref& r = eager::need(x, "mean");
  return outside(
      reduced(Reduce::Kind::kMean, cast_to(r, eager::floating(r->type.dtype)), std::move(axes), keepdims, "mean"));
}
EagerTensor var(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  return mean(square(x - mean(x, axes, true)), axes, keepdims);
}
EagerTensor max(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  return outside(reduced(Reduce::Kind::kMax, eager::need(x, "max"), std::move(axes), keepdims, "max"));
}
// Whole numbers without a sign are turned over by their bits, which reverses their order too.
EagerTensor min(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  if (!is_floating(x.dtype())) return ~max(~x, std::move(axes), keepdims);
  return -max(-x, std::move(axes), keepdims);
}
EagerTensor any(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  return cast(max(cast(cast(x, DType::kBool), DType::kInt32), std::move(axes), keepdims), DType::kBool);
}
EagerTensor all(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  return ~any(logical_not(x), std::move(axes), keepdims);
}

namespace {
// The order of dimensions in which `axis` is the last.
std::vector<int> to_the_end(int rank, int axis) {
  std::vector<int> order;
  for (int i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return order;
}
std::vector<int> undone(const std::vector<int>& order) {
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[size_t(order[i])] = int(i);
  return back;
}
}  // namespace

EagerTensor argmax(const EagerTensor& x, int axis) {
  const Ref& r = eager::need(x, "argmax");
  const int a = axis_of(r, axis, "argmax"), rank = x.rank();
  return outside(apply(std::make_shared<ArgMax>(), {a == rank - 1 ? r : transpose(x, to_the_end(rank, a)).impl()}));
}
EagerTensor argmin(const EagerTensor& x, int axis) { return argmax(is_floating(x.dtype()) ? -x : ~x, axis); }
EagerTensor norm(const EagerTensor& x) { return sqrt(sum(square(cast(x, eager::floating(x.dtype()))))); }
EagerTensor softmax(const EagerTensor& x, int axis) {
  const Ref& r = eager::need(x, "softmax");
  const int a = axis_of(r, axis, "softmax"), rank = x.rank();
  const EagerTensor in = cast(x, eager::floating(x.dtype()));
  if (a == rank - 1) return outside(apply(std::make_shared<Softmax>(), {in.impl()}));
  const std::vector<int> order = to_the_end(rank, a);
  return transpose(outside(apply(std::make_shared<Softmax>(), {transpose(in, order).impl()})), undone(order));
}
EagerTensor logsumexp(const EagerTensor& x, std::vector<int> axes, bool keepdims) {
  const EagerTensor most = stop_gradient(max(cast(x, eager::floating(x.dtype())), axes, true));
  const EagerTensor whole = log(sum(exp(x - most), axes, true)) + most;
  if (keepdims) return whole;
  return reshape(whole, max(x, std::move(axes)).shape());
}
EagerTensor log_softmax(const EagerTensor& x, int axis) { return x - logsumexp(x, {axis}, true); }

EagerTensor matmul(const EagerTensor& x, const EagerTensor& y) {
  const DType in = eager::floating(promote(x.dtype(), y.dtype())), meet = promote(x.dtype(), y.dtype());
  if (x.rank() == 0 || y.rank() == 0)
    throw Error(Code::kShape,
                format("matmul: x is {} and y is {}, but a number has no product of matrices", x.shape(), y.shape()))
        .hint("multiply with *");
  const Ref a = reshaped(cast_to(x.impl(), in), x.rank() == 1 ? x.shape().with_front(1) : x.shape());
  const Ref b = reshaped(cast_to(y.impl(), in), y.rank() == 1 ? Shape{y.shape()[0], 1} : y.shape());
  Ref c = apply(std::make_shared<MatMul>(), {a, b});
  Shape shape = c->type.shape;
  if (y.rank() == 1) shape = shape.without(-1);
  if (x.rank() == 1) shape = shape.without(y.rank() == 1 ? shape.rank() - 1 : shape.rank() - 2);
  return outside(cast_to(reshaped(c, shape), is_floating(meet) ? in : meet));
}

EagerTensor reshape(const EagerTensor& x, Shape shape) {
  const Ref& r = eager::need(x, "reshape");
  int open = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) {
      known *= shape[i];
      continue;
    }
    if (open >= 0) throw Error(Code::kShape, format("reshape: two dimensions of {} are -1", shape));
    open = i;
  }
  if (open >= 0 && known > 0 && x.size() % known == 0) shape = shape.with(open, x.size() / known);
  if (!shape.known() || shape.size() != x.size())
    throw Error(Code::kShape,
                format("reshape: x is {}, of {} values, which do not go into {}", x.shape(), x.size(), shape));
  return outside(reshaped(r, shape));
}
EagerTensor squeeze(const EagerTensor& x, std::vector<int> axes) {
  const Ref& r = eager::need(x, "squeeze");
  for (int& a : axes) {
    a = axis_of(r, a, "squeeze");
    if (x.shape()[a] != 1) throw Error(Code::kShape, format("squeeze: dimension {} of {} is not 1", a, x.shape()));
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i)
    if (x.shape()[i] != 1 || (!axes.empty() && std::ranges::find(axes, i) == axes.end())) dims.push_back(x.shape()[i]);
  return outside(reshaped(r, Shape(dims)));
}
EagerTensor expand_dims(const EagerTensor& x, int axis) {
  const Ref& r = eager::need(x, "expand_dims");
  const int a = axis_of(r, axis, "expand_dims", 1);
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  dims.insert(dims.begin() + a, 1);
  return outside(reshaped(r, Shape(dims)));
}
EagerTensor transpose(const EagerTensor& x, std::vector<int> axes) {
  const Ref& r = eager::need(x, "transpose");
  if (axes.empty())
    for (int i = x.rank(); i-- > 0;) axes.push_back(i);
  for (int& a : axes) a = axis_of(r, a, "transpose");
  return outside(apply(std::make_shared<Transpose>(std::move(axes)), {r}));
}
EagerTensor broadcast_to(const EagerTensor& x, Shape shape) {
  const Ref& r = eager::need(x, "broadcast_to");
  return x.shape() == shape ? x : outside(apply(std::make_shared<BroadcastTo>(shape), {r}));
}

EagerTensor concatenate(const EagerTensors& xs, int axis) {
  if (xs.empty()) throw Error(Code::kUsage, "concatenate: nothing to put together").hint("give at least one tensor");
  std::vector<Ref> refs = eager::need(xs, "concatenate");
  DType meet = refs[0]->type.dtype;
  for (const Ref& r : refs) meet = promote(meet, r->type.dtype);
  for (Ref& r : refs) r = cast_to(r, meet);
  return outside(eager::apply_all(std::make_shared<Concatenate>(axis_of(refs[0], axis, "concatenate")), refs)[0]);
}
EagerTensor stack(const EagerTensors& xs, int axis) {
  EagerTensors all;
  for (const EagerTensor& x : xs) all.push_back(expand_dims(x, axis));
  if (axis < 0 && !all.empty()) axis += all[0].rank();
  return concatenate(all, axis);
}
EagerTensor flip(const EagerTensor& x, int axis) {
  const int a = axis_of(eager::need(x, "flip"), axis, "flip");
  std::vector<Index> indices(size_t(a), Index(millpond::Slice{}));
  indices.push_back(millpond::Slice{.step = -1});
  return x.at(indices);
}
EagerTensor slice(const EagerTensor& x, std::vector<int64_t> starts, Shape sizes) {
  return outside(apply(std::make_shared<Slice>(std::move(starts), sizes), {eager::need(x, "slice")}));
}

// Rows of a table of two dimensions are what the operator gathers: the axis comes to the front, all others become one.
EagerTensor take(const EagerTensor& x, const EagerTensor& indices, int axis) {
  const Ref& r = eager::need(x, "take");
  const int a = axis_of(r, axis, "take"), rank = x.rank();
  Ref at = eager::need(indices, "take");
  if (!is_integer(at->type.dtype))
    throw Error(Code::kDType, format("take: the indices are {}", to_string(at->type)))
        .hint("they must be whole numbers");
  eager::expect_range(*at, -x.shape()[a], x.shape()[a], [&](int64_t index) {
    return Error(Code::kValue, format("take: index {} of a tensor of shape {} along axis {}", index, x.shape(), a))
        .hint(format("it has {} there", x.shape()[a]));
  });
  if (is_signed(at->type.dtype)) {
    const Ref size = eager::filled({at->type.dtype, {}}, double(x.shape()[a]));
    const Ref below = millpond::binary(Function::k_greater, eager::filled({at->type.dtype, {}}, 0), at);
    if (x.shape()[a] < (int64_t{1} << (8 * size_of(at->type.dtype).value - 1)))
      at = apply(std::make_shared<Select>(), {below, millpond::binary(Function::k_add, at, size), at});
  }
  std::vector<int> front{a};
  for (int i = 0; i < rank; ++i)
    if (i != a) front.push_back(i);
  const EagerTensor moved = a == 0 ? x : transpose(x, front);
  const Shape rest = moved.shape().without(0);
  const Ref table = reshaped(moved.impl(), {x.shape()[a], rest.size()});
  const Shape& wanted = at->type.shape;
  std::vector<int64_t> dims(wanted.begin(), wanted.end());
  dims.insert(dims.end(), rest.begin(), rest.end());
  const EagerTensor rows = outside(reshaped(apply(std::make_shared<Gather>(), {table, at}), Shape(dims)));
  if (a == 0) return rows;
  std::vector<int> back;  // the indices' dimensions go where the axis was
  for (int i = 0; i < a; ++i) back.push_back(wanted.rank() + i);
  for (int i = 0; i < wanted.rank(); ++i) back.push_back(i);
  for (int i = a; i < rest.rank(); ++i) back.push_back(wanted.rank() + i);
  return transpose(rows, back);
}
EagerTensor one_hot(const EagerTensor& x, int64_t classes, DType dtype) {
  return outside(apply(std::make_shared<OneHot>(classes, dtype), {eager::need(x, "one_hot")}));
}

}  // namespace ops

// ---- indices

EagerTensor EagerTensor::at(std::span<const Index> indices) const {
  const Ref& r = eager::need(*this, "[]");
  const Shape& shape = r->type.shape;
  int named = 0;
  bool rest = false;
  for (const Index& i : indices) {
    named += std::holds_alternative<int64_t>(i.what()) || std::holds_alternative<Slice>(i.what());
    if (std::holds_alternative<Ellipsis>(i.what())) {
      if (rest) throw Error(Code::kUsage, "[]: ellipsis stands twice");
      rest = true;
    }
  }
  if (named > shape.rank())
    throw Error(Code::kShape, format("[]: {} indices for a tensor of shape {}", named, shape))
        .hint(format("it has {} dimensions", shape.rank()));
  std::vector<int64_t> starts, sizes, result;
  std::vector<std::pair<int, std::vector<int64_t>>> stepped;  // dimensions, and which of their elements
  int axis = 0;
  const auto whole = [&](int many) {
    for (; many > 0; --many, ++axis) starts.push_back(0), sizes.push_back(shape[axis]), result.push_back(shape[axis]);
  };
  for (const Index& index : indices) {
    if (std::holds_alternative<NewAxis>(index.what())) {
      result.push_back(1);
    } else if (std::holds_alternative<Ellipsis>(index.what())) {
      whole(shape.rank() - named);
    } else if (const int64_t* at = std::get_if<int64_t>(&index.what())) {
      const int64_t n = shape[axis], i = *at < 0 ? *at + n : *at;
      if (i < 0 || i >= n)
        throw Error(Code::kShape, format("[]: index {} of dimension {} of a tensor of shape {}", *at, axis, shape))
            .hint(format("it has {} there", n));
      starts.push_back(i), sizes.push_back(1), ++axis;
    } else {
      const Slice& s = std::get<Slice>(index.what());
      const int64_t n = shape[axis];
      if (s.step == 0) throw Error(Code::kValue, "[]: the step of a slice is 0");
      const bool down = s.step < 0;  // Python's rule for what is left out and what lies outside
      const auto inside = [&](std::optional<int64_t> v, int64_t missing) {
        if (!v) return missing;
        return std::clamp(*v < 0 ? *v + n : *v, down ? int64_t{-1} : 0, down ? n - 1 : n);
      };
      const int64_t from = inside(s.start, down ? n - 1 : 0), to = inside(s.stop, down ? -1 : n);
      const int64_t count =
          std::max<int64_t>(0, down ? (from - to - s.step - 1) / -s.step : (to - from + s.step - 1) / s.step);
      if (s.step == 1) {
        starts.push_back(count > 0 ? from : 0), sizes.push_back(count);
      } else {
        std::vector<int64_t> which;
        for (int64_t k = 0; k < count; ++k) which.push_back(from + k * s.step);
        stepped.emplace_back(axis, std::move(which));
        starts.push_back(0), sizes.push_back(n);
      }
      result.push_back(count), ++axis;
    }
  }
  whole(shape.rank() - axis);
  EagerTensor x = *this;
  if (Shape(sizes) != shape) x = ops::slice(x, starts, Shape(sizes));
  for (const auto& [dimension, which] : stepped)
    x = ops::take(x, EagerTensor::of(which, {int64_t(which.size())}), dimension);
  return ops::reshape(x, Shape(result));
}

}  // namespace millpond
