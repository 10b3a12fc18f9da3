// window_for: the geometry of a convolution or pooling layer on images of a given size.
#pragma once
#include "nn/layer.h"
#include "ops/conv2d.h"

namespace millpond::nn {

/// Throws Error(kShape) when the window does not fit into the image.
ops::Window window_for(const LayerImpl& layer, const Shape& images, Size2D size, Size2D strides, Size2D dilation,
                       Padding padding);

}  // namespace millpond::nn
