// normalization: what batch_norm and layer_norm share beyond their kernels: gradients that reach the statistics from
// elsewhere, and the gradient of the gradient. Written for statistics over `axes`, all values shaped to broadcast
// against x.
#pragma once
#include "graph/builder.h"

namespace millpond::ops {

using graph::Builder;
using graph::Value;

/// The gradient of x from those of the statistics mean and variance (either may be null).
Value statistics_backward(Builder& b, Value x, Value mean, Value dmean, Value dvariance, const std::vector<int>& axes);

/// What the gradients v, a, c (null: zero) of dx, dgamma, dbeta mean for x, gamma and dy. mean and rstd are taken as
/// the functions of x that they are, so nothing is left to flow through them.
struct SecondGradients {
  Value dx, dgamma, ddy;
};
SecondGradients normalization_second(Builder& b, Value x, Value gamma, Value mean, Value rstd, Value dy, Value v,
                                     Value a, Value c, const std::vector<int>& axes);

}  // namespace millpond::ops
