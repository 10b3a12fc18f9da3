// config: what Keras's model.to_json() says, as a network of our layers.
#pragma once
#include <memory>
#include <string_view>

#include "nn/network.h"

namespace millpond::nn {

/// Throws Error(kFormat) on text that is no such JSON, Error(kUnsupported) naming a layer or option that is not here.
std::shared_ptr<Network> network_from_json(std::string_view json);

}  // namespace millpond::nn
