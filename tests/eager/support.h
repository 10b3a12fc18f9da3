// Values of eager tensors as lists, and gradients against central differences.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "millpond/gradient_tape.h"
#include "millpond/ops.h"
#include "support/message_of.h"

namespace millpond {

inline std::vector<double> list(const EagerTensor& t) {
  const Tensor host = t.to_tensor();
  std::vector<double> all;
  for (int64_t i = 0; i < host.size(); ++i) all.push_back(host.at(i));
  return all;
}
inline EagerTensor tensor(Shape shape, std::vector<double> values, DType dtype = DType::kFloat32) {
  return EagerTensor(Tensor::of(values, shape).astype(dtype));
}
inline void check_near(const EagerTensor& got, const std::vector<double>& wanted, double tolerance = 1e-6) {
  const std::vector<double> all = list(got);
  REQUIRE(all.size() == wanted.size());
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(all[i] - wanted[i]) <= tolerance * (1 + std::abs(wanted[i])));
  }
}

using Formula = std::function<EagerTensor(const EagerTensors&)>;

/// The tape's gradients of sum(f * weights) agree with central differences in float64. The error of such a difference is
/// about h^2 f''' / 6 + u f / h: with h = 1e-5 some 1e-10 of values near 1.
inline void check_gradients(const Formula& f, const EagerTensors& xs, double tolerance = 1e-6) {
  GradientTape tape;
  tape.watch(xs);
  const EagerTensor y = f(xs);
  EagerTensor weights = ops::cast(ops::sqrt(ops::arange(2, 2 + y.size()) * 1.0), y.dtype());
  weights = ops::reshape(weights, y.shape());
  const EagerTensors got = tape.gradient(y, xs, {.output_gradients = {weights}});
  for (size_t k = 0; k < xs.size(); ++k) {
    const Tensor x = xs[k].to_tensor();
    std::vector<double> wanted;
    for (int64_t i = 0; i < x.size(); ++i) {
      constexpr double kStep = 1e-5;
      const auto at = [&](double by) {
        Tensor moved = x.astype(x.dtype());
        moved.values<double>()[size_t(i)] += by;
        EagerTensors all = xs;
        all[k] = EagerTensor(moved);
        return double(ops::sum(f(all) * weights));
      };
      wanted.push_back((at(kStep) - at(-kStep)) / (2 * kStep));
    }
    CAPTURE(k);
    REQUIRE_FALSE(got[k].is_none());
    check_near(got[k], wanted, tolerance);
  }
}

}  // namespace millpond
