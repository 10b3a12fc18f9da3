#include <doctest/doctest.h>

#include <cmath>

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "support/operators.h"

namespace millpond::test {

using backend::cpu_backend;
using ops::Function;

namespace {
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (int rank = 0; rank <= 4; ++rank)
    for (const Shape& s : awkward_shapes(rank)) all.push_back(s);
  return all;
}
bool is_plain(Function f) {  // one correctly rounded operation, or none
  switch (f) {
    case Function::k_exp:
    case Function::k_log:
    case Function::k_log1p:
    case Function::k_tanh:
    case Function::k_sigmoid:
    case Function::k_erf:
    case Function::k_power:
    case Function::k_sigmoid_cross_entropy:
    case Function::k_rsqrt:
      return false;
    default:
      return true;
  }
}
}  // namespace

TEST_CASE("cpu unary: agrees with the reference on every awkward shape") {
  for (Function f : {
#define MP_UNARY(name, formula) Function::k_##name,
#include "ops/functions.inc"
       }) {
    CAPTURE(to_string(f));
    const bool positive =
        f == Function::k_log || f == Function::k_log1p || f == Function::k_sqrt || f == Function::k_rsqrt;
    // cpu/math.h promises 2.2 ulps at most; rsqrt is a root and a division
    for (const Shape& s : shapes())
      check_twin(cpu_backend(), ops::Unary(f), {random(s, 3, DType::kFloat32, positive ? 1e-3 : -9, 9)},
                 is_plain(f) ? ulps(0.5) : ulps(2.5));
  }
}

TEST_CASE("cpu unary: special values are the reference's") {
  const double inf = INFINITY, nan = NAN;
  const Tensor x = values({10}, {0, -0.0, inf, -inf, nan, 3e38, -3e38, 1e-30, 88, -88});
  for (Function f :
       {Function::k_negate, Function::k_exp, Function::k_log, Function::k_log1p, Function::k_sqrt, Function::k_square,
        Function::k_abs, Function::k_tanh, Function::k_sigmoid, Function::k_relu, Function::k_erf})
    check_twin(cpu_backend(), ops::Unary(f), {x}, ulps(2.5));
}

TEST_CASE("cpu binary: agrees with the reference, broadcast or not") {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{7, 33}, {33}},      {{7, 33}, {7, 1}},         {{7, 33}, {}}, {{33}, {7, 33}}, {{}, {65}},
      {{5, 1, 17}, {4, 1}}, {{2, 3, 4, 5}, {3, 1, 5}}, {{0, 3}, {3}}, {{1, 1}, {1}}};
  for (Function f : {
#define MP_BINARY(name, formula) Function::k_##name,
#define MP_COMPARE(name, formula) Function::k_##name,
#include "ops/functions.inc"
       }) {
    CAPTURE(to_string(f));
    const double low = f == Function::k_power ? 0.1 : -2;
    // power: exp(y log x) loses |y log x| <= 5 units of the exponent's last place; cross-entropy: three terms that
    // cancel
    const Tolerance t = is_plain(f) ? ulps(0.5) : f == Function::k_power ? ulps(8) : scale(4);
    for (const Shape& s : shapes())
      check_twin(cpu_backend(), ops::Binary(f),
                 {random(s, 1, DType::kFloat32, low, 2), random(s, 2, DType::kFloat32, low, 2)}, t);
    for (const auto& [x, y] : pairs)
      check_twin(cpu_backend(), ops::Binary(f),
                 {random(x, 1, DType::kFloat32, low, 2), random(y, 2, DType::kFloat32, low, 2)}, t);
  }
}

TEST_CASE("cpu binary: ties, zeros and NaN compare as in the reference") {
  const Tensor x = values({6}, {1, 2, 0, NAN, INFINITY, -1}), y = values({6}, {1, 1, -0.0, 1, INFINITY, NAN});
  for (Function f : {Function::k_greater, Function::k_greater_equal, Function::k_equal, Function::k_maximum,
                     Function::k_minimum, Function::k_gate})
    check_twin(cpu_backend(), ops::Binary(f), {x, y}, exact());
}

TEST_CASE("cpu: whole numbers and the other floating types agree to the bit") {
  for (DType t : {DType::kFloat64, DType::kBFloat16, DType::kFloat16, DType::kInt32, DType::kInt64, DType::kUInt8}) {
    const Tensor x = random({5, 7}, 1, t, 1, 9), y = random({7}, 2, t, 1, 9);
    check_twin(cpu_backend(), ops::Binary(Function::k_add), {x, y}, exact());
    check_twin(cpu_backend(), ops::Binary(Function::k_greater), {x, y}, exact());
    check_twin(cpu_backend(), ops::Unary(Function::k_square), {x}, exact());
  }
}

TEST_CASE("cpu select and cast: agree to the bit") {
  for (const Shape& s : shapes())
    check_twin(cpu_backend(), ops::Select(), {random(s, 1, DType::kBool, 0, 2), random(s, 2), random(s, 3)}, exact());
  check_twin(cpu_backend(), ops::Select(), {random({6, 1}, 1, DType::kBool, 0, 2), random({17}, 2), random({}, 3)},
             exact());
  for (DType from : kAllDTypes)
    for (DType to : kAllDTypes)
      check_twin(cpu_backend(), ops::Cast(to), {random({3, 37}, 5, DType::kFloat64, 0, 200).astype(from)}, exact());
  check_twin(cpu_backend(), ops::Cast(DType::kInt32), {values({7}, {-1.9, 1.9, 3e9, -3e9, NAN, INFINITY, 0.5})},
             exact());
}

TEST_CASE("cpu dropout: keeps the very elements the reference keeps") {
  for (const Shape& s : shapes())
    check_twin(cpu_backend(), ops::Dropout(0.3, 12345678901234ull), {random(s, 1), values({}, {41}, DType::kInt32)},
               ulps(0.5));
}

}  // namespace millpond::test
