// Pooling of images [height, width, channels]: the largest or the mean value of each window, or of the whole image.
// Memory: the pooled image; the mean leaves padding out, as Keras does.
#pragma once
#include "millpond/layers/layer.h"

namespace millpond {

struct Pooling2DOptions {
  OptionalSize2D strides = {};  // none: the pool size
  Padding padding = "valid";
  std::string name = "";
};

class MaxPooling2D : public Layer {
 public:
  explicit MaxPooling2D(Size2D pool_size = 2, Pooling2DOptions options = {});
};

class AveragePooling2D : public Layer {
 public:
  explicit AveragePooling2D(Size2D pool_size = 2, Pooling2DOptions options = {});
};

struct GlobalPooling2DOptions {
  bool keepdims = false;  // [1, 1, channels] instead of [channels]
  std::string name = "";
};

class GlobalAveragePooling2D : public Layer {
 public:
  explicit GlobalAveragePooling2D(GlobalPooling2DOptions options = {});
};

}  // namespace millpond
