// apply: the formulas of ops/functions.inc as code.
#pragma once
#include <cmath>

#include "ops/expression.h"

namespace millpond::ops {

/// f(x) or f(x, y); a comparison gives 1 or 0.
template <class T>
T apply(Function f, T x, T y = T(0)) {
  switch (f) {
#define MP_CASE(name, formula) \
  case Function::k_##name:     \
    return T(formula);
#define MP_UNARY MP_CASE
#define MP_BINARY MP_CASE
#define MP_COMPARE MP_CASE
#include "ops/functions.inc"
#undef MP_CASE
    default:
      return T(0);
  }
}

}  // namespace millpond::ops
