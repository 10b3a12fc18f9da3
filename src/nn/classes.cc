#include "nn/classes.h"

#include "base/format.h"
#include "nn/model_json.h"

namespace millpond::nn {

const std::map<std::string, LayerClass, std::less<>>& layer_classes() {
  static const LayerClasses classes = [] {
    LayerClasses all;
#define MP_LAYER_FILE(file) all.begin(#file), declare_##file(all);
#include "nn/layer_files.inc"
#undef MP_LAYER_FILE
    return all;
  }();
  return classes.all();
}

std::vector<std::string> layer_types() {
  std::vector<std::string> types;
  for (const auto& [type, c] : layer_classes())
    if (type != "InputLayer") types.push_back(type);
  return types;
}

std::shared_ptr<LayerImpl> layer_from_config(const std::string& type, const Json& config) {
  const auto named = config.is_object() ? config.find("name") : config.end();
  const std::string name = config.is_object() && named != config.end() && named->is_string()
                               ? format(" \"{}\"", named->get<std::string>())
                               : "";
  const auto found = layer_classes().find(type);
  if (found == layer_classes().end())
    throw Error(Code::kUnsupported, format("layer {}{} is not here yet", type, name)).hint(meant(type, layer_types()));
  std::shared_ptr<LayerImpl> layer = found->second.make();
  read_options(*layer, config, type + name);
  settle_layer(*layer);
  return layer;
}

}  // namespace millpond::nn
