#include "nn/initialize.h"

#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "base/convert.h"
#include "base/random.h"
#include "base/team.h"

namespace millpond {
namespace nn {
namespace {

struct Fans {
  double in = 1, out = 1;
};
// Keras's compute_fans: a convolution's taps count for both.
Fans fans_of(const Shape& s) {
  if (s.rank() == 0) return {};
  if (s.rank() == 1) return {double(s[0]), double(s[0])};
  double taps = 1;
  for (int i = 0; i < s.rank() - 2; ++i) taps *= double(s[i]);
  return {taps * double(s[-2]), taps * double(s[-1])};
}

double uniform01(uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

// One of the pair that Box and Muller make of two uniform numbers; `i` picks its own two numbers.
float normal(uint64_t key, uint64_t i) {
  const uint64_t bits = mix64(key + i * 0x632be59bd9b4e019ull);
  const float u = (float(bits >> 40) + 0.5f) * 0x1p-24f, v = float(bits & 0xffffff) * 0x1p-24f;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi_v<float> * v);
}

float truncated_normal(uint64_t key, uint64_t i) {
  for (uint64_t round = 0;; ++round) {
    const float z = normal(mix64(key ^ (round << 48)), i);
    if (std::abs(z) <= 2) return z;
  }
}

template <class F>
void fill(float* to, int64_t n, F&& value) {
  constexpr int64_t kBlock = 1 << 18;
  if (n <= kBlock) {
    for (int64_t i = 0; i < n; ++i) to[i] = value(i);
    return;
  }
  std::vector<std::thread> helpers;  // rare and long: a model's first moment
  const int threads = int(std::min<int64_t>(usable_threads(), (n + kBlock - 1) / kBlock));
  const auto part = [&](int t) {
    for (int64_t i = n * t / threads, end = n * (t + 1) / threads; i < end; ++i) to[i] = value(i);
  };
  for (int t = 1; t < threads; ++t) helpers.emplace_back(part, t);
  part(0);
  for (std::thread& h : helpers) h.join();
}

// Normal numbers made orthogonal by Gram and Schmidt, twice, since once leaves what rounding has left. As Keras: all
// dimensions but the last are rows.
void fill_orthogonal(float* to, int64_t rows, int64_t cols, double gain, uint64_t key) {
  const int64_t count = std::min(rows, cols), length = std::max(rows, cols);
  std::vector<double> v(size_t(count * length));
  for (size_t i = 0; i < v.size(); ++i) v[i] = double(normal(key, i));
  for (int64_t i = 0; i < count; ++i) {
    double* const x = v.data() + i * length;
    for (int round = 0; round < 2; ++round)
      for (int64_t j = 0; j < i; ++j) {
        const double* const y = v.data() + j * length;
        double dot = 0;
        for (int64_t k = 0; k < length; ++k) dot += x[k] * y[k];
        for (int64_t k = 0; k < length; ++k) x[k] -= dot * y[k];
      }
    double square = 0;
    for (int64_t k = 0; k < length; ++k) square += x[k] * x[k];
    for (int64_t k = 0; k < length; ++k) x[k] /= std::sqrt(square);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      to[r * cols + c] = float(gain * (rows <= cols ? v[size_t(r * length + c)] : v[size_t(c * length + r)]));
}

}  // namespace

void initialize(Tensor weight, const Initializer& init, uint64_t seed) {
  using Kind = Initializer::Kind;
  const int64_t n = weight.size();
  if (weight.dtype() != DType::kFloat32) {  // drawn as float32, so that a seed gives the same weights in every type
    if (init.kind == Kind::kConstant && init.a == 0) return;
    Tensor drawn(DType::kFloat32, weight.shape(), "weights");
    initialize(drawn, init, seed);
    return convert(drawn.data(), DType::kFloat32, weight.data(), weight.dtype(), n);
  }
  float* to = weight.values<float>().data();
  const uint64_t key = mix64(seed);
  Kind kind = init.kind;
  double a = init.a, b = init.b;
  if (kind == Kind::kVarianceScaling) {
    const Fans fans = fans_of(weight.shape());
    const double fan = init.fan == Initializer::Fan::kIn    ? fans.in
                       : init.fan == Initializer::Fan::kOut ? fans.out
                                                            : (fans.in + fans.out) / 2;
    const double variance = init.a / std::max(1.0, fan);
    kind = init.distribution;
    if (kind == Kind::kUniform)
      b = std::sqrt(3 * variance), a = -b;
    else
      a = 0, b = std::sqrt(variance) /
                 (kind == Kind::kTruncatedNormal ? .87962566103423978 : 1);  // cutting the tails made it narrower
  }
  switch (kind) {
    case Kind::kConstant:
      if (a != 0) fill(to, n, [&](int64_t) { return float(a); });
      return;  // placed memory is zero already, and stays untouched
    case Kind::kUniform:
      return fill(to, n, [&](int64_t i) {
        return float(a + (b - a) * uniform01(mix64(key + uint64_t(i) * 0x632be59bd9b4e019ull)));
      });
    case Kind::kNormal:
      return fill(to, n, [&](int64_t i) { return float(a + b * normal(key, uint64_t(i))); });
    case Kind::kTruncatedNormal:
      return fill(to, n, [&](int64_t i) { return float(a + b * truncated_normal(key, uint64_t(i))); });
    case Kind::kOrthogonal:
      return fill_orthogonal(to, n / weight.shape().back(), weight.shape().back(), a, key);
    case Kind::kVarianceScaling:
      break;
  }
}

}  // namespace nn
}  // namespace millpond
