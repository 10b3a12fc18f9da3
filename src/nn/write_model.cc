#include <algorithm>
#include <map>

#include "base/format.h"
#include "nn/classes.h"
#include "nn/model_json.h"

namespace millpond::nn {
namespace {

Written shape_of(const TensorType& t) {
  Written list = Written::array({nullptr});
  for (int i = 1; i < t.shape.rank(); ++i) list.push_back(t.shape[i] == None ? Written(nullptr) : Written(t.shape[i]));
  return list;
}

// One layer, as it stands in a model's list.
Written layer_entry(const LayerImpl& layer) {
  if (const auto* net = dynamic_cast<const Network*>(&layer)) return network_to_json(*net);
  if (!layer_classes().contains(layer.type))
    throw Error(Code::kUnsupported, format("{} cannot be written as JSON: Keras has no such layer", layer.who()));
  return as_object("keras.layers", layer.type, config_of(layer));
}

Written sequential_config(const Network& net) {
  Written config{{"name", net.name}, {"trainable", net.trainable}, {"dtype", policy_to_json(net.policy)}};
  Written list = Written::array();
  for (const auto& layer : net.layers) list.push_back(layer_entry(*layer));
  config["layers"] = std::move(list);
  config["build_input_shape"] = shape_of(type_of(net.inputs[0]));
  return config;
}

// Calls of each layer that belong to a network, in the order in which they were made: Keras counts them so.
class Calls {
 public:
  explicit Calls(const Network& net) {
    for (const auto& node : net.calls) of_[node->layer.get()].push_back(node.get());
    for (auto& [layer, calls] : of_) std::ranges::stable_sort(calls, {}, &CallNode::number);
  }
  const std::vector<const CallNode*>& of(const LayerImpl& layer) const { return of_.at(&layer); }

  /// ["dense", 0, 0]: the layer, which of its calls, which result.
  Written history(const SymbolicTensor& t) const {
    const auto& calls = of(*t.node()->layer);
    return Written::array(
        {t.node()->layer->name, std::ranges::find(calls, t.node().get()) - calls.begin(), t.output()});
  }
  Written tensor(const SymbolicTensor& t) const {
    const TensorType& type = type_of(t);
    return {{"class_name", "__keras_tensor__"},
            {"config", {{"shape", shape_of(type)}, {"dtype", to_string(type.dtype)}, {"keras_history", history(t)}}}};
  }
  Written ends(const std::vector<SymbolicTensor>& tensors, bool is_list) const {
    if (tensors.size() == 1 && !is_list) return history(tensors[0]);
    Written list = Written::array();
    for (const SymbolicTensor& t : tensors) list.push_back(history(t));
    return list;
  }
  Written inbound(const CallNode& node) const {
    if (node.options.training)
      throw Error(Code::kUnsupported,
                  format("{} is called with training fixed, which a model of Keras overrules: its JSON cannot say it",
                         node.layer->who()))
          .hint("leave .training out of the call's options");
    Written tensors = Written::array(), kwargs = Written::object();
    const std::string rest(node.layer->rest_argument());
    for (const SymbolicTensor& t : node.inputs)
      (rest.empty() || tensors.empty() ? tensors : kwargs[rest]).push_back(tensor(t));
    if (node.options.use_causal_mask) kwargs["use_causal_mask"] = true;
    for (const auto& [name, value] : node.noted) kwargs[name] = value;
    const bool list = tensors.size() > 1 && !node.layer->takes_arguments();
    return {{"args", list ? Written::array({tensors}) : tensors}, {"kwargs", kwargs}};
  }

 private:
  std::map<const LayerImpl*, std::vector<const CallNode*>> of_;
};

Written functional_config(const Network& net) {
  const Calls calls(net);
  Written list = Written::array();
  for (const auto& layer : net.layers) {
    Written entry = layer_entry(*layer), nodes = Written::array();
    for (const CallNode* node : calls.of(*layer))
      if (!node->inputs.empty()) nodes.push_back(calls.inbound(*node));
    entry["name"] = layer->name;
    entry["inbound_nodes"] = std::move(nodes);
    list.push_back(std::move(entry));
  }
  return {{"name", net.name},
          {"trainable", net.trainable},
          {"layers", std::move(list)},
          {"input_layers", calls.ends(net.inputs, net.inputs_are_list)},
          {"output_layers", calls.ends(net.outputs, net.outputs_are_list)}};
}

// A chain that calls one layer twice has no list of layers that says so; it is written as the graph that it is.
bool is_list(const Network& net) { return net.sequential && net.calls.size() == net.layers.size(); }

}  // namespace

Written config_of(const LayerImpl& layer) {
  if (const auto* net = dynamic_cast<const Network*>(&layer))
    return is_list(*net) ? sequential_config(*net) : functional_config(*net);
  return write_options(layer);
}

Written network_to_json(const Network& net) {
  if (!is_list(net)) {
    Written json =
        as_object("keras.src.models.functional", "Functional", config_of(net));  // as Keras 3 itself names its place
    json["registered_name"] = "Functional";
    return json;
  }
  Written json = as_object("keras", "Sequential", config_of(net));
  json["build_config"] = {{"input_shape", shape_of(type_of(net.inputs[0]))}};
  return json;
}

}  // namespace millpond::nn
