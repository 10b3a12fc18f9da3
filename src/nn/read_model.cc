#include <algorithm>
#include <map>

#include "base/format.h"
#include "millpond/layers/input.h"
#include "nn/classes.h"
#include "nn/model_json.h"

namespace millpond::nn {
namespace {

constexpr const char* kModel = "a Keras model";

[[noreturn]] void malformed(const std::string& what) {
  throw Error(Code::kFormat, format("this is not the JSON of {}: {}", kModel, what));
}

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}
const Json& member(const Json& object, const char* key, std::string_view of) {
  const Json* j = find(object, key);
  if (!j) malformed(format("{} has no \"{}\"", of, key));
  return *j;
}
std::string text_of(const Json& j, const std::string& what) {
  if (!j.is_string()) malformed(format("{} is {}, not a text", what, brief(j)));
  return j.get<std::string>();
}

SymbolicTensor input_from(Json config) {
  if (const Json* older = find(config, "batch_input_shape"); older && !find(config, "batch_shape"))
    config["batch_shape"] = *older;
  if (!find(config, "batch_shape")) malformed("InputLayer has no batch_shape");
  config.erase("batch_input_shape");
  return tensor_of(layer_from_config("InputLayer", config));
}

bool is_network(const std::string& type) { return type == "Functional" || type == "Sequential" || type == "Model"; }

std::shared_ptr<Network> network_of(const Json& model, int depth);

std::shared_ptr<LayerImpl> layer_of(const Json& j, int depth) {
  const std::string type = text_of(member(j, "class_name", "a layer"), "class_name");
  return is_network(type) ? network_of(j, depth + 1) : layer_from_config(type, member(j, "config", type));
}

void read_own(Network& net, const Json& config) {
  if (const Json* trainable = find(config, "trainable"); trainable && trainable->is_boolean())
    net.trainable = trainable->get<bool>();
}
std::string name_in(const Json& config) {
  const Json* name = find(config, "name");
  return name && name->is_string() ? name->get<std::string>() : "";
}

std::shared_ptr<Network> sequential_of(const Json& config, const Json& model, int depth) {
  const Json& list = member(config, "layers", "the model");
  if (!list.is_array() || list.empty()) malformed("its list of layers is empty");
  SymbolicTensor first, x;
  for (const Json& j : list) {
    const std::string type = text_of(member(j, "class_name", "a layer"), "class_name");
    if (type == "InputLayer") {
      if (x) malformed("an InputLayer stands behind other layers");
      first = x = input_from(member(j, "config", type));
      continue;
    }
    if (!x) {
      const Json* shape = find(config, "build_input_shape");
      if (!shape)
        if (const Json* b = find(model, "build_config")) shape = find(*b, "input_shape");
      if (!shape || !shape->is_array())
        throw Error(Code::kUnsupported, "the model does not say what a sample looks like")
            .hint("put keras.Input(shape) first, or build the model before to_json()");
      first = x = input_from({{"batch_shape", *shape}});
    }
    x = call(layer_of(j, depth), {x});
  }
  auto net = make_network({first}, {x}, name_in(config), true);
  read_own(*net, config);
  return net;
}

// Where a tensor of the model comes from: result `output` of call `node` of a layer.
struct Reference {
  std::string layer;
  int64_t node = 0;
  int output = 0;
};
Reference reference_of(const Json& j) {
  if (!j.is_array() || j.size() < 3 || !j[0].is_string() || !j[1].is_number_integer() || !j[2].is_number_integer())
    malformed(format("{} does not name a tensor", brief(j)));
  const double node = j[1].get<double>(), output = j[2].get<double>();
  if (node < 0 || node > 1e6 || output < 0 || output > 1e6) malformed(format("{} does not name a tensor", brief(j)));
  return {j[0].get<std::string>(), j[1].get<int64_t>(), int(output)};
}

struct PlannedCall {
  std::vector<Reference> inputs;
  CallOptions options;
  std::vector<std::pair<std::string, bool>> noted;
  SymbolicTensor result;
  bool open = false;  // being worked on: met again, it is a cycle
};
struct PlannedLayer {
  std::shared_ptr<LayerImpl> layer;
  std::vector<PlannedCall> calls;
};

bool is_tensor(const Json& j) {
  const Json* c = find(j, "class_name");
  return c && *c == "__keras_tensor__";
}
void tensors_in(const Json& j, std::vector<Reference>& to) {
  if (is_tensor(j))
    to.push_back(reference_of(member(member(j, "config", "a tensor"), "keras_history", "a tensor")));
  else if (j.is_array())
    for (const Json& e : j) tensors_in(e, to);
}

// null, or a list of them: the masks of a model's inputs, where there are none.
bool says_nothing(const Json& j) {
  return j.is_null() || (j.is_array() && std::ranges::all_of(j, [](const Json& e) { return e.is_null(); }));
}

// Arguments of calls that hold tensors.
constexpr std::string_view kTensors[] = {"query", "inputs", "sequences", "value", "key", "initial_state"};

PlannedCall planned_call(const Json& node, const std::string& who) {
  PlannedCall p;
  const Json& args = member(node, "args", format("a call of {}", who));
  tensors_in(args, p.inputs);
  if (args.is_array())
    for (const Json& a : args)
      if (!is_tensor(a) && !a.is_array() && !a.is_null())
        throw Error(Code::kUnsupported, format("{} is called with {}", who, brief(a)));
  const Json* kwargs = find(node, "kwargs");
  if (kwargs && kwargs->is_object())
    for (const std::string_view key : kTensors)
      if (const Json* v = find(*kwargs, key.data())) tensors_in(*v, p.inputs);
  if (kwargs && kwargs->is_object())
    for (const auto& [key, value] : kwargs->items()) {
      if (std::ranges::find(kTensors, std::string_view(key)) != std::end(kTensors) || says_nothing(value)) continue;
      // A model of Keras puts its own mode in the place of `training`.
      if ((key == "training" && value.is_boolean()) ||
          ((key == "use_causal_mask" || key == "return_attention_scores") && value == false))
        p.noted.emplace_back(key, value.get<bool>());
      else if (key == "use_causal_mask" && value == true)
        p.options.use_causal_mask = true;
      else
        throw Error(Code::kUnsupported, format("{} is called with {} = {}", who, key, brief(value)));
    }
  return p;
}

std::vector<Reference> ends_of(const Json& config, const char* key, bool& are_list) {
  const Json& j = member(config, key, "the model");
  std::vector<Reference> ends;
  are_list = !(j.is_array() && !j.empty() && j[0].is_string());
  if (!are_list)
    ends.push_back(reference_of(j));
  else if (j.is_array())
    for (const Json& e : j) ends.push_back(reference_of(e));
  else
    throw Error(Code::kUnsupported, format("{} = {}: only lists are known", key, brief(j)));
  if (ends.empty()) malformed(format("{} is empty", key));
  return ends;
}

std::shared_ptr<Network> functional_of(const Json& config, int depth) {
  const Json& list = member(config, "layers", "the model");
  if (!list.is_array() || list.empty()) malformed("its list of layers is empty");
  std::map<std::string, PlannedLayer, std::less<>> layers;
  for (const Json& j : list) {
    const std::string type = text_of(member(j, "class_name", "a layer"), "class_name");
    const Json& inner = member(j, "config", type);
    const Json* named = find(j, "name") ? find(j, "name") : find(inner, "name");
    if (!named) malformed(format("a {} has no name", type));
    const std::string name = text_of(*named, "name");
    PlannedLayer& l = layers[name];
    if (!l.calls.empty() || l.layer) malformed(format("two layers have the name \"{}\"", name));
    if (type == "InputLayer") {
      PlannedCall p;
      p.result = input_from(inner);
      l.calls.push_back(std::move(p));
      continue;
    }
    l.layer = layer_of(j, depth);
    const Json& nodes = member(j, "inbound_nodes", format("{} \"{}\"", type, name));
    if (!nodes.is_array()) malformed(format("inbound_nodes of \"{}\" is {}", name, brief(nodes)));
    for (const Json& n : nodes) l.calls.push_back(planned_call(n, format("{} \"{}\"", type, name)));
  }
  const auto at = [&](const Reference& r) -> PlannedCall& {
    const auto it = layers.find(r.layer);
    if (it == layers.end() || size_t(r.node) >= it->second.calls.size())
      malformed(format("there is no call {} of a layer \"{}\"", r.node, r.layer));
    return it->second.calls[size_t(r.node)];
  };
  const auto result = [&](const Reference& r) {
    const SymbolicTensor& first = at(r).result;
    if (size_t(r.output) >= first.node()->types.size())
      malformed(format("the layer \"{}\" has no result {}", r.layer, r.output));
    return SymbolicTensor(first.node(), r.output);
  };
  // Calls whose operands are known are made; others wait on a stack for them.
  const auto make = [&](const Reference& wanted) {
    std::vector<Reference> stack{wanted};
    while (!stack.empty()) {
      const Reference r = stack.back();
      PlannedCall& p = at(r);
      if (p.result) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      for (const Reference& in : p.inputs)
        if (PlannedCall& q = at(in); !q.result) {
          if (q.open) malformed(format("the layer \"{}\" depends on itself", in.layer));
          stack.push_back(in);
          ready = false;
          break;
        }
      p.open = true;
      if (!ready) continue;
      std::vector<SymbolicTensor> xs;
      for (const Reference& in : p.inputs) xs.push_back(result(in));
      auto node = make_call(layers.find(r.layer)->second.layer, std::move(xs), p.options);
      node->number = int(r.node);  // calls are made as they are needed, but keep the numbers that the model gives them
      node->noted = std::move(p.noted);
      p.result = SymbolicTensor(std::move(node), 0);
      p.open = false;
      stack.pop_back();
    }
    return result(wanted);
  };
  std::vector<SymbolicTensor> inputs, outputs;
  bool inputs_are_list = false, outputs_are_list = false;
  for (const Reference& r : ends_of(config, "input_layers", inputs_are_list)) inputs.push_back(make(r));
  for (const Reference& r : ends_of(config, "output_layers", outputs_are_list)) outputs.push_back(make(r));
  for (auto& [name, l] : layers)
    if (l.layer) l.layer->calls = int(l.calls.size());
  auto net = make_network(std::move(inputs), std::move(outputs), name_in(config));
  net->inputs_are_list = inputs_are_list;
  net->outputs_are_list = outputs_are_list;
  read_own(*net, config);
  return net;
}

std::shared_ptr<Network> network_of(const Json& model, int depth) {
  if (depth > 8) malformed("models nest more than 8 deep");
  if (!model.is_object()) malformed(brief(model));
  const std::string type = text_of(member(model, "class_name", "it"), "class_name");
  const Json& config = member(model, "config", type);
  if (type == "Sequential") return sequential_of(config, model, depth);
  if (type == "Functional" || type == "Model") return functional_of(config, depth);
  throw Error(Code::kUnsupported, format("a model of class {} is not here yet", type))
      .hint(meant(type, {"Sequential", "Functional"}));
}

}  // namespace

std::shared_ptr<Network> network_from_json(std::string_view text) {
  const Json json = from_text(text, kModel);
  try {
    return network_of(json, 0);
  } catch (const nlohmann::json::exception& e) {
    malformed(e.what());
  }
}

std::shared_ptr<LayerImpl> layer_from_json(const std::string& type, const Json& config) {
  return layer_of({{"class_name", type}, {"config", config}}, 0);
}

}  // namespace millpond::nn
