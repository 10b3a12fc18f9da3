// Layers: names, defaults and order of arguments are Keras's; what is optional there is a struct of named options here.
//
//   Conv2D(32, {3, 3}, relu)
//   Conv2D(32, 3, {.strides = 2, .padding = "same", .use_bias = false, .name = "stem"})
#pragma once
#include "millpond/layers/activation.h"
#include "millpond/layers/attention.h"
#include "millpond/layers/conv2d.h"
#include "millpond/layers/dense.h"
#include "millpond/layers/embedding.h"
#include "millpond/layers/input.h"
#include "millpond/layers/merging.h"
#include "millpond/layers/normalization.h"
#include "millpond/layers/pooling.h"
#include "millpond/layers/recurrent.h"
#include "millpond/layers/regularization.h"
#include "millpond/layers/reshaping.h"
