// model_json: a network as Keras's model.to_json() writes it, and back.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "nn/network.h"
#include "nn/options.h"

namespace millpond::nn {

/// Throws Error(kFormat) on text that is no such JSON, Error(kUnsupported) naming a layer or option that is not here.
std::shared_ptr<Network> network_from_json(std::string_view json);

/// A layer of Keras's class name and config. Throws as read_options does; Error(kUnsupported) naming the nearest class
/// when there is none of this name.
std::shared_ptr<LayerImpl> layer_from_config(const std::string& type, const Json& config);
/// The same, or a network used as a layer.
std::shared_ptr<LayerImpl> layer_from_json(const std::string& type, const Json& config);

/// {"module": ..., "class_name": ..., "config": ..., ...}
Written network_to_json(const Network& net);
/// The "config" of a layer, or of a network used as one.
Written config_of(const LayerImpl& layer);

}  // namespace millpond::nn
