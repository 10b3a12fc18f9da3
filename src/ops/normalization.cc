#include "ops/normalization.h"

#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/check.h"
#include "ops/reduce.h"
#include "ops/unary.h"

namespace millpond::ops {

Value statistics_backward(Builder& b, Value x, Value mean, Value dmean, Value dvariance, const std::vector<int>& axes) {
  double n = 1;
  for (int a : axes) n *= double(x.shape()[a]);
  Value dx;
  if (dmean) dx = broadcast_to(b, multiply(b, dmean, 1 / n), x.shape());
  if (dvariance) dx = add_gradients(b, dx, multiply(b, multiply(b, dvariance, 2 / n), subtract(b, x, mean)));
  return dx;
}

// With h = (x - mean) rstd, g = dy gamma and P(u) = u - m(u) - h m(u h), m the mean over axes:
//   dx = rstd P(g), dgamma = sum dy h, dbeta = sum dy;   L = <v, dx> + <a, dgamma> + <c, dbeta>.
// P is symmetric, and is also (but for rstd) the derivative of h by x; d rstd / dx = -rstd^2 h / n. Hence
//   dL/ddy = gamma rstd P(v) + a h + c                        dL/dgamma = sum dy rstd P(v)
//   dL/dh  = a dy - rstd (v m(g h) + g m(v h)) =: w           dL/dx = rstd P(w) - rstd^2 h m(v P(g))
SecondGradients normalization_second(Builder& b, Value x, Value gamma, Value mean, Value rstd, Value dy, Value v,
                                     Value a, Value c, const std::vector<int>& axes) {
  auto m = [&](Value u) { return ops::mean(b, u, axes, true); };
  const Value h = multiply(b, subtract(b, x, mean), rstd);
  auto project = [&](Value u) { return subtract(b, subtract(b, u, m(u)), multiply(b, h, m(multiply(b, u, h)))); };
  Value ddy, w, dgamma, dx;
  if (v) {
    const Value g = multiply(b, dy, gamma);
    const Value pv = multiply(b, rstd, project(v));
    ddy = multiply(b, gamma, pv);
    dgamma = sum_to(b, multiply(b, dy, pv), gamma.shape());
    w = negate(b,
               multiply(b, rstd, add(b, multiply(b, v, m(multiply(b, g, h))), multiply(b, g, m(multiply(b, v, h))))));
    dx = negate(b, multiply(b, multiply(b, square(b, rstd), h), m(multiply(b, v, project(g)))));
  }
  if (a) {
    ddy = add_gradients(b, ddy, multiply(b, h, a));
    w = add_gradients(b, w, multiply(b, dy, a));
  }
  if (c) ddy = ddy ? add(b, ddy, c) : broadcast_to(b, c, dy.shape());
  if (w) dx = add_gradients(b, dx, multiply(b, rstd, project(w)));
  return {dx, dgamma, ddy};
}

}  // namespace millpond::ops
