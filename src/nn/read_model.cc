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
  std::vector<std::pair<std::string, std::vector<Reference>>> masks;  // by argument: where each comes from
  CallOptions options;
  std::vector<std::pair<std::string, bool>> noted;
  SymbolicTensor result;
  bool open = false;  // being worked on: met again, it is a cycle
};
struct PlannedLayer {
  std::shared_ptr<LayerImpl> layer;
  std::vector<PlannedCall> calls;
  // An operator of Keras's own that stands among the layers, "operation NotEqual", with its calls as they stand.
  std::string operation;
  const Json* nodes = nullptr;
};
using PlannedLayers = std::map<std::string, PlannedLayer, std::less<>>;

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

// Masks that Keras makes and hands on by itself stand in a model's JSON as operators and arguments. Here every layer
// does that again, so they are only compared with what comes of it.
constexpr std::string_view kMasks[] = {"mask", "query_mask", "value_mask", "key_mask"};

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
      if (std::ranges::find(kMasks, std::string_view(key)) != std::end(kMasks)) {
        tensors_in(value, p.masks.emplace_back(key, std::vector<Reference>{}).second);
        if (!p.masks.back().second.empty()) continue;
      }
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

// An operator of Keras's that may stand among the layers.
bool is_operation(const Json& j) {
  const Json* module = find(j, "module");
  return module && module->is_string() && module->get<std::string>().starts_with("keras.src.ops");
}

// What the mask that a reference names is made from: the tensors that are compared, and the numbers they are compared
// with. `result` gives the tensor of a layer's call, or none before it has been made.
template <class Result>
void mask_sources(const PlannedLayers& layers, const Reference& mask, const Result& result,
                  std::vector<Mask::Source>& to, int depth = 0) {
  const auto it = layers.find(mask.layer);
  if (it == layers.end() || it->second.operation.empty() || depth > 64)
    throw Error(Code::kUnsupported, format("a mask that the layer \"{}\" gives is not here yet", mask.layer));
  const PlannedLayer& l = it->second;
  if (size_t(mask.node) >= l.nodes->size()) malformed(format("there is no call {} of \"{}\"", mask.node, mask.layer));
  const Json& node = (*l.nodes)[size_t(mask.node)];
  const Json& args = member(node, "args", format("a call of \"{}\"", mask.layer));
  std::vector<Reference> inputs;
  tensors_in(args, inputs);
  if (l.operation == "operation NotEqual") {
    if (inputs.size() != 1 || args.size() != 2 || !args[1].is_number())
      throw Error(Code::kUnsupported, format("the mask \"{}\" compares {}", mask.layer, brief(args)));
    const Mask::Source source{result(inputs[0]), args[1].get<double>()};
    if (std::ranges::find(to, source) == to.end()) to.push_back(source);
  } else if (l.operation == "operation Any" || l.operation == "operation LogicalOr" ||
             l.operation == "operation Concatenate" || l.operation == "operation ExpandDims") {
    for (const Reference& in : inputs)
      if (const auto of = layers.find(in.layer); of == layers.end() || (of->second.operation != "operation ZerosLike" &&
                                                                        of->second.operation != "operation OnesLike"))
        mask_sources(layers, in, result, to, depth + 1);
  } else {
    throw Error(Code::kUnsupported, format("the {} in the mask of a call is not here yet", l.operation));
  }
}

// A mask that a call is given must be the one that its operand has of itself.
template <class Result>
void check_masks(const PlannedLayers& layers, const PlannedCall& call, const LayerImpl& layer,
                 std::span<const SymbolicTensor> xs, const Result& result) {
  for (const auto& [argument, references] : call.masks) {
    const size_t operand = argument == "value_mask" ? 1 : argument == "key_mask" ? 2 : 0;
    std::vector<Mask::Source> from;
    for (const Reference& r : references) mask_sources(layers, r, result, from);
    const std::vector<Mask::Source>* own = operand < xs.size() ? &mask_of(xs[operand]).from : nullptr;
    if (!own || !std::ranges::is_permutation(from, *own))
      throw Error(Code::kUnsupported,
                  format("{} is called with a {} that is not the mask of its operand", layer.who(), argument))
          .hint("leave the argument out: masks of Embedding and Masking are handed on by the layers between");
  }
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
  PlannedLayers layers;
  for (const Json& j : list) {
    const std::string type = text_of(member(j, "class_name", "a layer"), "class_name");
    const Json& inner = member(j, "config", type);
    const Json* named = find(j, "name") ? find(j, "name") : find(inner, "name");
    if (!named) malformed(format("a {} has no name", type));
    const std::string name = text_of(*named, "name");
    PlannedLayer& l = layers[name];
    if (!l.calls.empty() || l.layer || l.nodes) malformed(format("two layers have the name \"{}\"", name));
    if (type == "InputLayer") {
      PlannedCall p;
      p.result = input_from(inner);
      l.calls.push_back(std::move(p));
      continue;
    }
    const Json& nodes = member(j, "inbound_nodes", format("{} \"{}\"", type, name));
    if (!nodes.is_array()) malformed(format("inbound_nodes of \"{}\" is {}", name, brief(nodes)));
    if (is_operation(j)) {
      l.operation = "operation " + type;
      l.nodes = &nodes;
      continue;
    }
    l.layer = layer_of(j, depth);
    for (const Json& n : nodes) l.calls.push_back(planned_call(n, format("{} \"{}\"", type, name)));
  }
  const auto at = [&](const Reference& r) -> PlannedCall& {
    const auto it = layers.find(r.layer);
    if (it != layers.end() && it->second.nodes)
      throw Error(Code::kUnsupported, format("the model applies the {} (\"{}\") to its tensors, which is not here yet",
                                             it->second.operation, r.layer))
          .hint("models of layers alone are read");
    if (it == layers.end() || size_t(r.node) >= it->second.calls.size())
      malformed(format("there is no call {} of a layer \"{}\"", r.node, r.layer));
    return it->second.calls[size_t(r.node)];
  };
  const auto result = [&](const Reference& r) {
    const SymbolicTensor& first = at(r).result;
    if (!first) return SymbolicTensor();
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
      const std::shared_ptr<LayerImpl>& layer = layers.find(r.layer)->second.layer;
      check_masks(layers, p, *layer, xs, result);
      auto node = make_call(layer, std::move(xs), p.options);
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
