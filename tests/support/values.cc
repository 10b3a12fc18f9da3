#include <cmath>

#include "base/random.h"
#include "operators.h"

namespace millpond::test {

Tensor random(const Shape& shape, uint64_t seed, DType dtype, double low, double high) {
  Tensor wide(DType::kFloat64, shape);
  Random r(seed);
  for (double& v : wide.values<double>()) {
    v = low + (high - low) * r.uniform();
    if (!is_floating(dtype)) v = std::floor(v);
  }
  return wide.astype(dtype);
}

Tensor values(const Shape& shape, std::vector<double> v, DType dtype) {
  return Tensor::of<double>(v, shape).astype(dtype);
}

std::vector<double> list(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.size(); ++i) v.push_back(t.at(i));
  return v;
}

std::vector<Shape> awkward_shapes(int rank) {
  switch (rank) {
    case 0:
      return {{}};
    case 1:
      return {{0}, {1}, {7}, {15}, {17}, {64}, {1000}, {20011}};
    case 2:
      return {{0, 3}, {3, 0}, {1, 1}, {1, 17}, {17, 1}, {7, 13}, {16, 16}, {31, 33}, {5, 127}, {129, 65}, {300, 3}};
    case 3:
      return {{2, 0, 3}, {1, 1, 1}, {3, 5, 7}, {2, 17, 16}, {4, 3, 33}};
    default:
      return {{1, 1, 1, 1}, {0, 4, 4, 3}, {1, 5, 5, 1}, {2, 7, 9, 3}, {1, 6, 8, 16}, {2, 9, 5, 17}, {3, 4, 33, 2}};
  }
}

TensorType type(Shape shape, DType dtype) { return {dtype, shape}; }

std::string refusal_of(const graph::Operator& op, const std::vector<TensorType>& types) {
  try {
    op.infer(types);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace millpond::test
