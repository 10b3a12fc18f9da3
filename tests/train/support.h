// Small models and data for the tests of training.
#pragma once
#include <vector>

#include "base/random.h"
#include "millpond/millpond.h"
#include "support/message_of.h"

namespace millpond {

inline Tensor uniform(Shape shape, uint64_t seed, double low = 0, double high = 1) {
  Tensor t(DType::kFloat32, shape, "data/test");
  Random random(seed);
  for (float& v : t.values<float>()) v = float(low + (high - low) * random.uniform());
  return t;
}

inline Tensor classes(Shape shape, int64_t count, uint64_t seed) {
  Tensor t(DType::kInt32, shape, "data/test");
  Random random(seed);
  for (int32_t& v : t.values<int32_t>()) v = int32_t(random.below(uint64_t(count)));
  return t;
}

/// 1 where the sum of a sample's values is above its mean, else 0: something that can be learnt.
inline Tensor learnable(const Tensor& x) {
  const int64_t n = x.shape()[0], width = x.size() / n;
  Tensor y(DType::kFloat32, {n, 1}, "data/test");
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += x.at(i * width + j);
    y.values<float>()[size_t(i)] = sum > 0.5 * double(width) ? 1.f : 0.f;
  }
  return y;
}

inline std::vector<float> flat(const std::vector<Tensor>& tensors) {
  std::vector<float> all;
  for (const Tensor& t : tensors)
    for (const float v : t.values<float>()) all.push_back(v);
  return all;
}

}  // namespace millpond
