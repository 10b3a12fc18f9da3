// Data for the examples: points in a square, and whether they lie in the circle inside it.
#pragma once
#include <millpond/millpond.h>

#include <cstdlib>

struct Points {
  millpond::Tensor x, y;
};

inline Points points(int64_t count) {
  using namespace millpond;
  Points p{Tensor(DType::kFloat32, {count, 2}), Tensor(DType::kFloat32, {count, 1})};
  for (int64_t i = 0; i < count; ++i) {
    const float a = float(std::rand()) / float(RAND_MAX) * 2 - 1, b = float(std::rand()) / float(RAND_MAX) * 2 - 1;
    p.x.values<float>()[size_t(2 * i)] = a;
    p.x.values<float>()[size_t(2 * i + 1)] = b;
    p.y.values<float>()[size_t(i)] = a * a + b * b < 0.6f ? 1.f : 0.f;
  }
  return p;
}
