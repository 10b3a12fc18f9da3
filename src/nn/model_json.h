// model_json: a network as Keras's model.to_json() writes it, and back.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "nn/network.h"

namespace millpond::nn {

/// Throws Error(kFormat) on text that is no such JSON, Error(kUnsupported) naming a layer or option that is not here.
std::shared_ptr<Network> network_from_json(std::string_view json);

/// Of a layer, or of a network used as one, by its class.
std::shared_ptr<LayerImpl> layer_from_json(const std::string& type, const Json& config);

/// {"module": ..., "class_name": ..., "config": ..., ...}
Written network_to_json(const Network& net);
/// The "config" of a layer, or of a network used as one.
Written config_of(const LayerImpl& layer);

}  // namespace millpond::nn
