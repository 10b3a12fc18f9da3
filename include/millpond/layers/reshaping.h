// Layers that only move values: Flatten and Reshape are views and cost nothing; ZeroPadding2D is a copy, unless the
// convolution behind it takes the padding over.
#pragma once
#include "millpond/layers/layer.h"

namespace millpond {

class Flatten : public Layer {
 public:
  explicit Flatten(std::string name = "");
};

class Reshape : public Layer {
 public:
  /// Of one sample; one dimension may be -1: what is left.
  explicit Reshape(std::vector<int64_t> target_shape, std::string name = "");
};

/// Rows and columns of zeros: ZeroPadding2D(3), ZeroPadding2D({1, 2}) for height and width, or all four sides.
class ZeroPadding2D : public Layer {
 public:
  explicit ZeroPadding2D(Size2D padding = 1, std::string name = "");
  ZeroPadding2D(int64_t top, int64_t bottom, int64_t left, int64_t right, std::string name = "");
};

}  // namespace millpond
