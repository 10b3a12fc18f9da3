#include <doctest/doctest.h>

#include <cmath>

#include "nn/initialize.h"
#include "train/support.h"

using namespace millpond;

namespace {
struct Moments {
  double mean = 0, deviation = 0, least = 1e9, most = -1e9;
};
Moments moments(const Initializer& init, Shape shape = {300, 200}) {
  Tensor t(DType::kFloat32, shape);
  nn::initialize(t, init, 7);
  Moments m;
  for (const float v : t.values<float>())
    m.mean += v, m.least = std::min<double>(m.least, v), m.most = std::max<double>(m.most, v);
  m.mean /= double(t.size());
  for (const float v : t.values<float>()) m.deviation += (v - m.mean) * (v - m.mean);
  m.deviation = std::sqrt(m.deviation / double(t.size()));
  return m;
}
}  // namespace

// 60,000 draws: the mean is off by deviation / 245, the deviation by about deviation / 346 (one sigma); four sigmas
// here.
void check_moments(const Initializer& init, double deviation, double most) {
  const Moments m = moments(init);
  CHECK(std::abs(m.mean) < 4 * deviation / 245);
  CHECK(std::abs(m.deviation - deviation) < 4 * deviation / 346);
  CHECK(m.most <= most);
  CHECK(m.least >= -most);
}

TEST_CASE("initializers: spread and bounds are what Keras documents") {
  const double in = 300, out = 200, limit = std::sqrt(6 / (in + out));
  check_moments(GlorotUniform(), limit / std::sqrt(3), limit);
  check_moments(HeUniform(), std::sqrt(2 / in), std::sqrt(6 / in));
  check_moments(LecunUniform(), std::sqrt(1 / in), std::sqrt(3 / in));
  check_moments(GlorotNormal(), std::sqrt(2 / (in + out)), 2 * std::sqrt(2 / (in + out)) / .87962566);
  check_moments(HeNormal(), std::sqrt(2 / in), 2 * std::sqrt(2 / in) / .87962566);
  check_moments(RandomNormal(0, 0.02), 0.02, 0.02 * 6);
  check_moments(RandomUniform(), 0.05 / std::sqrt(3), 0.05);
  check_moments(TruncatedNormal(0, 1), .87962566, 2);
}

TEST_CASE("initializers: names, constants and seeds") {
  CHECK(moments("zeros").most == 0);
  CHECK(moments("ones").least == 1);
  CHECK(moments(Constant(2.5)).mean == 2.5);
  CHECK(message_of([] { Initializer("glorot"); }).starts_with("initializer \"glorot\" is not known; known are zeros"));
  const auto values = [](auto&& make) {
    Dense d = make();
    d(Input({5}));
    return flat(d.get_weights());
  };
  set_random_seed(4);
  const auto a = values([] { return Dense(3); }), b = values([] { return Dense(3); });
  set_random_seed(4);
  CHECK(values([] { return Dense(3); }) == a);
  CHECK(a != b);
  const auto own = [] { return Dense(3, {.kernel_initializer = GlorotUniform(9)}); };
  CHECK(values(own) == values(own));
}
