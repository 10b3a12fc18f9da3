// Dropout: sets a share of the values to 0 while training and scales the others up by 1 / (1 - rate).
// Memory: none; which values go is computed anew from a counter in backward, no mask is stored.
#pragma once
#include "millpond/layers/layer.h"

namespace millpond {

struct DropoutOptions {
  std::optional<uint64_t> seed = {};
  std::string name = "";
};

class Dropout : public Layer {
 public:
  explicit Dropout(double rate, DropoutOptions options = {});
};

}  // namespace millpond
