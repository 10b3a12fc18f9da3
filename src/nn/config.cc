#include "nn/config.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "millpond/layers.h"

namespace millpond::nn {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 100;                       // nesting of brackets; Keras's own files need about 15
constexpr int64_t kLargest = int64_t{1} << 31;      // of any number in a configuration

[[noreturn]] void malformed(const std::string& what) { throw Error(Code::kFormat, "this is not the JSON of a Keras model: " + what); }

// Brackets outside of strings. The parser itself keeps its place on the heap, but what reads its result recurses.
void expect_shallow(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      else if (c == '"') quoted = false;
    } else if (c == '"') quoted = true;
    else if (c == '[' || c == '{') {
      if (++depth > kDeepest) malformed(format("its brackets nest more than {} deep", kDeepest));
    } else if (c == ']' || c == '}') --depth;
  }
}

std::string brief(const Json& j) {
  std::string s = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  return s.size() > 60 ? s.substr(0, 57) + "..." : s;
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

// The "config" of one layer. Everything read is ticked off; what is left at the end is something we do not know.
class Config {
 public:
  Config(const Json& j, std::string type) : j_(j), type_(std::move(type)) {
    if (!j.is_object()) malformed(format("the config of a {} is {}", type_, brief(j)));
    name_ = text("name", "");
  }
  const std::string& name() const { return name_; }
  std::string who() const { return name_.empty() ? type_ : format("{} \"{}\"", type_, name_); }

  const Json* get(const char* key) {
    const Json* v = find(j_, key);
    if (v) used_.insert(key);
    return v && v->is_null() ? nullptr : v;
  }
  int64_t integer(const char* key) {
    const Json* v = get(key);
    if (!v) malformed(format("{} has no \"{}\"", who(), key));
    return to_integer(*v, key);
  }
  int64_t integer(const char* key, int64_t otherwise) {
    const Json* v = get(key);
    return v ? to_integer(*v, key) : otherwise;
  }
  double number(const char* key, double otherwise) {
    const Json* v = get(key);
    if (!v) return otherwise;
    if (!v->is_number()) malformed(format("{}: {} is {}, not a number", who(), key, brief(*v)));
    return v->get<double>();
  }
  bool boolean(const char* key, bool otherwise) {
    const Json* v = get(key);
    if (!v) return otherwise;
    if (!v->is_boolean()) malformed(format("{}: {} is {}, neither true nor false", who(), key, brief(*v)));
    return v->get<bool>();
  }
  std::string text(const char* key, std::string otherwise) {
    const Json* v = get(key);
    return v ? text_of(*v, format("{}: {}", type_, key)) : std::move(otherwise);
  }
  std::vector<int64_t> integers(const char* key) {
    const Json* v = get(key);
    if (!v) malformed(format("{} has no \"{}\"", who(), key));
    std::vector<int64_t> list;
    if (v->is_array())
      for (const Json& e : *v) list.push_back(to_integer(e, key));
    else list.push_back(to_integer(*v, key));
    return list;
  }
  Size2D size(const char* key, Size2D otherwise) {
    if (!get(key)) return otherwise;
    const auto list = integers(key);
    if (list.size() == 1) return Size2D(list[0]);
    if (list.size() != 2) malformed(format("{}: {} needs one or two numbers", who(), key));
    return Size2D(list[0], list[1]);
  }
  std::optional<uint64_t> seed(const char* key) {
    const Json* v = get(key);
    return v && v->is_number_integer() ? std::optional(uint64_t(v->get<int64_t>())) : std::nullopt;
  }
  ActivationFunction activation(const char* key) {
    const Json* v = get(key);
    if (!v) return linear;
    if (const Json* inner = find(*v, "config"); inner && inner->is_string()) v = inner;  // a function, as some versions write it
    if (!v->is_string()) unsupported(key, *v);
    try {
      return ActivationFunction(v->get<std::string>());
    } catch (const Error&) {
      unsupported(key, *v);
    }
  }
  Initializer initializer(const char* key, Initializer otherwise) {
    const Json* v = get(key);
    if (!v) return otherwise;
    try {
      if (v->is_string()) {
        const std::string s = v->get<std::string>();
        return Initializer(s.find('_') == std::string::npos && !s.empty() && std::isupper(static_cast<unsigned char>(s[0])) ? snake_case(s) : s);
      }
      const Json* type = find(*v, "class_name");
      const Json* config = find(*v, "config");
      if (!type || !type->is_string()) unsupported(key, *v);
      Initializer init(snake_case(type->get<std::string>()));
      if (config && config->is_object()) {
        const auto value = [&](const char* k, double& to) {
          if (const Json* n = find(*config, k); n && n->is_number()) to = n->get<double>();
        };
        using Kind = Initializer::Kind;
        if (init.kind == Kind::kConstant) value("value", init.a);
        if (init.kind == Kind::kUniform) value("minval", init.a), value("maxval", init.b);
        if (init.kind == Kind::kNormal || init.kind == Kind::kTruncatedNormal) value("mean", init.a), value("stddev", init.b);
        if (init.kind == Kind::kVarianceScaling) {
          value("scale", init.a);
          const auto word = [&](const char* k) {
            const Json* w = find(*config, k);
            return w && w->is_string() ? w->get<std::string>() : std::string();
          };
          if (const auto m = word("mode"); !m.empty()) init.fan = m == "fan_out" ? Initializer::Fan::kOut : m == "fan_avg" ? Initializer::Fan::kAverage : Initializer::Fan::kIn;
          if (const auto d = word("distribution"); !d.empty()) init.distribution = d == "uniform" ? Kind::kUniform : d == "untruncated_normal" ? Kind::kNormal : Kind::kTruncatedNormal;
        }
        if (const Json* s = find(*config, "seed"); s && s->is_number_integer()) init.own_seed = uint64_t(s->get<int64_t>());
      }
      return init;
    } catch (const Error& e) {
      if (e.code() == Code::kUsage) unsupported(key, *v);
      throw;
    }
  }
  /// Options of Keras that may be there, but only with this value.
  void only(const char* key, const Json& value) {
    if (const Json* v = get(key); v && *v != value) unsupported(key, *v);
  }
  void none(std::initializer_list<const char*> keys) {
    for (const char* k : keys)
      if (const Json* v = get(k)) unsupported(k, *v);
  }
  void ignore(std::initializer_list<const char*> keys) { used_.insert(keys.begin(), keys.end()); }
  void channels_last() {
    only("data_format", "channels_last");
  }
  void finish() {
    dtype();
    ignore({"trainable", "batch_input_shape", "batch_shape", "autocast"});
    none({"quantization_config", "activity_regularizer"});
    for (const auto& [key, value] : j_.items())
      if (!used_.contains(key) && !value.is_null()) unsupported(key.c_str(), value);
  }
  [[noreturn]] void unsupported(const char* key, const Json& value) const {
    throw Error(Code::kUnsupported, format("{}: {} = {} is not here yet", who(), key, brief(value))).with("layer", name_);
  }

 private:
  void dtype() {
    const Json* v = get("dtype");
    if (!v) return;
    const Json* policy = v;
    if (const Json* c = find(*v, "config"))
      if (const Json* n = find(*c, "name")) policy = n;
    if (*policy != "float32") unsupported("dtype", *policy);
  }
  int64_t to_integer(const Json& v, const char* key) const {
    if (!v.is_number_integer() || v.get<double>() > double(kLargest) || v.get<double>() < -double(kLargest)) malformed(format("{}: {} is {}, not a whole number of reasonable size", who(), key, brief(v)));
    return v.get<int64_t>();
  }

  const Json& j_;
  std::string type_, name_;
  std::set<std::string, std::less<>> used_;
};

// ---- one function for each layer

Layer dense(Config& c) {
  c.none({"kernel_regularizer", "bias_regularizer", "kernel_constraint", "bias_constraint", "lora_rank", "lora_alpha"});
  return Dense(c.integer("units"), {.activation = c.activation("activation"), .use_bias = c.boolean("use_bias", true), .kernel_initializer = c.initializer("kernel_initializer", "glorot_uniform"),
                                    .bias_initializer = c.initializer("bias_initializer", "zeros"), .name = c.name()});
}
Layer conv2d(Config& c) {
  c.none({"kernel_regularizer", "bias_regularizer", "kernel_constraint", "bias_constraint", "lora_rank", "lora_alpha"});
  c.channels_last();
  c.ignore({"rank"});
  return Conv2D(c.integer("filters"), c.size("kernel_size", 1),
                {.strides = c.size("strides", 1), .padding = c.text("padding", "valid"), .dilation_rate = c.size("dilation_rate", 1), .groups = c.integer("groups", 1),
                 .activation = c.activation("activation"), .use_bias = c.boolean("use_bias", true), .kernel_initializer = c.initializer("kernel_initializer", "glorot_uniform"),
                 .bias_initializer = c.initializer("bias_initializer", "zeros"), .name = c.name()});
}
template <class Pooling>
Layer pooling(Config& c) {
  c.channels_last();
  const Size2D size = c.size("pool_size", 2);
  return Pooling(size, {.strides = c.size("strides", size), .padding = c.text("padding", "valid"), .name = c.name()});
}
Layer global_average(Config& c) {
  c.channels_last();
  return GlobalAveragePooling2D({.keepdims = c.boolean("keepdims", false), .name = c.name()});
}
Layer zero_padding(Config& c) {
  c.channels_last();
  std::vector<int64_t> sides;
  if (const Json* p = c.get("padding")) {
    if (p->is_array())
      for (const Json& e : *p) {
        if (e.is_array() && e.size() == 2 && e[0].is_number_integer() && e[1].is_number_integer()) sides.push_back(e[0].get<int64_t>()), sides.push_back(e[1].get<int64_t>());
        else if (e.is_number_integer()) sides.push_back(e.get<int64_t>()), sides.push_back(e.get<int64_t>());
      }
    else if (p->is_number_integer()) sides.assign(4, p->get<int64_t>());
  } else sides.assign(4, 1);
  if (sides.size() != 4) malformed(format("{}: padding needs a number, two numbers or two pairs", c.who()));
  for (const int64_t s : sides)
    if (s < 0 || s > kLargest) malformed(format("{}: padding is {}", c.who(), s));
  return ZeroPadding2D(sides[0], sides[1], sides[2], sides[3], c.name());
}
Layer flatten(Config& c) {
  c.channels_last();
  return Flatten(c.name());
}
Layer reshape(Config& c) { return Reshape(c.integers("target_shape"), c.name()); }
Layer dropout(Config& c) {
  c.none({"noise_shape"});
  return Dropout(c.number("rate", 0.5), {.seed = c.seed("seed"), .name = c.name()});
}
Layer batch_normalization(Config& c) {
  c.none({"beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint", "renorm_clipping"});
  c.only("synchronized", false), c.only("renorm", false), c.ignore({"renorm_momentum"});
  const auto axis = c.get("axis") ? c.integers("axis") : std::vector<int64_t>{-1};
  if (axis.size() != 1) malformed(format("{}: axis needs one number", c.who()));
  return BatchNormalization({.axis = int(axis[0]), .momentum = c.number("momentum", 0.99), .epsilon = c.number("epsilon", 1e-3), .center = c.boolean("center", true), .scale = c.boolean("scale", true),
                             .beta_initializer = c.initializer("beta_initializer", "zeros"), .gamma_initializer = c.initializer("gamma_initializer", "ones"),
                             .moving_mean_initializer = c.initializer("moving_mean_initializer", "zeros"),
                             .moving_variance_initializer = c.initializer("moving_variance_initializer", "ones"), .name = c.name()});
}
Layer layer_normalization(Config& c) {
  c.none({"beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint"});
  c.only("rms_scaling", false);
  std::vector<int> axis;
  for (const int64_t a : c.get("axis") ? c.integers("axis") : std::vector<int64_t>{-1}) axis.push_back(int(a));
  return LayerNormalization({.axis = axis, .epsilon = c.number("epsilon", 1e-3), .center = c.boolean("center", true), .scale = c.boolean("scale", true),
                             .beta_initializer = c.initializer("beta_initializer", "zeros"), .gamma_initializer = c.initializer("gamma_initializer", "ones"), .name = c.name()});
}
Layer activation(Config& c) { return Activation(c.activation("activation"), c.name()); }
Layer re_lu(Config& c) {
  std::optional<double> most;
  if (c.get("max_value")) most = c.number("max_value", 0);
  return ReLU({.max_value = most, .negative_slope = c.number("negative_slope", 0), .threshold = c.number("threshold", 0), .name = c.name()});
}
Layer softmax_layer(Config& c) { return Softmax(int(c.integer("axis", -1)), c.name()); }
Layer embedding(Config& c) {
  c.none({"embeddings_regularizer", "embeddings_constraint", "lora_rank", "lora_alpha", "input_length"});
  c.only("mask_zero", false);
  return Embedding(c.integer("input_dim"), c.integer("output_dim"), {.embeddings_initializer = c.initializer("embeddings_initializer", "uniform"), .name = c.name()});
}
Layer attention(Config& c) {
  c.none({"kernel_regularizer", "bias_regularizer", "kernel_constraint", "bias_constraint", "sliding_window", "flash_attention"});
  c.only("use_gate", false);
  c.only("attention_axes", Json::array({1}));  // what Keras writes for sequences; more axes are for images
  const auto whole = [&](const char* key) {
    std::optional<int64_t> v;
    if (c.get(key)) {
      const auto list = c.integers(key);
      if (list.size() != 1) c.unsupported(key, *c.get(key));
      v = list[0];
    }
    return v;
  };
  return MultiHeadAttention(c.integer("num_heads"), c.integer("key_dim"),
                            {.value_dim = whole("value_dim"), .dropout = c.number("dropout", 0), .use_bias = c.boolean("use_bias", true), .output_shape = whole("output_shape"),
                             .kernel_initializer = c.initializer("kernel_initializer", "glorot_uniform"), .bias_initializer = c.initializer("bias_initializer", "zeros"),
                             .seed = c.seed("seed"), .name = c.name()});
}
Layer add(Config& c) { return Add(c.name()); }
Layer concatenate(Config& c) { return Concatenate(int(c.integer("axis", -1)), c.name()); }

const std::map<std::string, Layer (*)(Config&), std::less<>>& makers() {
  static const std::map<std::string, Layer (*)(Config&), std::less<>> all{
      {"Activation", activation}, {"Add", add}, {"AveragePooling2D", pooling<AveragePooling2D>}, {"BatchNormalization", batch_normalization}, {"Concatenate", concatenate},
      {"Conv2D", conv2d}, {"Dense", dense}, {"Dropout", dropout}, {"Embedding", embedding}, {"Flatten", flatten}, {"GlobalAveragePooling2D", global_average},
      {"LayerNormalization", layer_normalization}, {"MaxPooling2D", pooling<MaxPooling2D>}, {"MultiHeadAttention", attention}, {"ReLU", re_lu}, {"Reshape", reshape},
      {"Softmax", softmax_layer}, {"ZeroPadding2D", zero_padding}};
  return all;
}

// ---- models

SymbolicTensor input_of(const Json& config, const std::string& type) {
  Config c(config, type);
  const Json* shape = c.get("batch_shape");
  if (!shape) shape = c.get("batch_input_shape");
  if (!shape || !shape->is_array() || shape->empty()) malformed(format("{} has no batch_shape", c.who()));
  std::vector<int64_t> dims;
  for (size_t i = 1; i < shape->size(); ++i) {
    const Json& d = (*shape)[i];
    if (d.is_null()) throw Error(Code::kUnsupported, format("{}: dimension {} of a sample is not fixed", c.who(), i)).hint("give Input a shape without None");
    if (!d.is_number_integer() || d.get<double>() < 0 || d.get<double>() > double(kLargest)) malformed(format("{}: a dimension is {}", c.who(), brief(d)));
    dims.push_back(d.get<int64_t>());
  }
  if (dims.size() >= size_t(Shape::kMaxRank)) throw Error(Code::kUnsupported, format("{}: {} dimensions, but at most {} are known", c.who(), dims.size() + 1, Shape::kMaxRank));
  std::string dtype = "float32";
  if (const Json* d = c.get("dtype"); d && d->is_string()) dtype = d->get<std::string>();
  DType type_of_data = DType::kFloat32;
  try {
    type_of_data = parse_dtype(dtype);
  } catch (const Error&) {
    throw Error(Code::kUnsupported, format("{}: dtype {} is not known", c.who(), dtype));
  }
  c.only("sparse", false), c.only("ragged", false);
  return Input(Shape(dims), type_of_data, c.name());
}

std::shared_ptr<Network> network_of(const Json& model, int depth);

std::shared_ptr<LayerImpl> layer_of(const Json& j, int depth) {
  const std::string type = text_of(member(j, "class_name", "a layer"), "class_name");
  if (type == "Functional" || type == "Sequential" || type == "Model") return network_of(j, depth + 1);
  const auto it = makers().find(type);
  const Json& config = member(j, "config", type);
  if (it == makers().end()) {
    std::string known;
    for (const auto& [n, f] : makers()) known += (known.empty() ? "" : ", ") + n;
    const Json* name = find(config, "name");
    throw Error(Code::kUnsupported, format("layer {}{} is not here yet", type, name && name->is_string() ? format(" \"{}\"", name->get<std::string>()) : "")).hint("known are " + known);
  }
  Config c(config, type);
  const Layer layer = it->second(c);
  c.finish();
  if (const Json* t = find(config, "trainable"); t && t->is_boolean()) layer.impl()->trainable = t->get<bool>();
  return layer.impl();
}

std::shared_ptr<Network> sequential_of(const Json& config, const Json& model) {
  const Json& list = member(config, "layers", "the model");
  if (!list.is_array() || list.empty()) malformed("its list of layers is empty");
  SymbolicTensor first, x;
  for (const Json& j : list) {
    const std::string type = text_of(member(j, "class_name", "a layer"), "class_name");
    if (type == "InputLayer") {
      if (x) malformed("an InputLayer stands behind other layers");
      first = x = input_of(member(j, "config", type), type);
      continue;
    }
    if (!x) {
      const Json* shape = find(config, "build_input_shape");
      if (!shape)
        if (const Json* b = find(model, "build_config")) shape = find(*b, "input_shape");
      if (!shape || !shape->is_array()) throw Error(Code::kUnsupported, "the model does not say what a sample looks like").hint("put keras.Input(shape) first, or build the model before to_json()");
      const Json made{{"name", ""}, {"batch_shape", *shape}};
      first = x = input_of(made, "InputLayer");
    }
    x = call(layer_of(j, 0), {x});
  }
  const Json* name = find(config, "name");
  return make_network({first}, {x}, name && name->is_string() ? name->get<std::string>() : "", true);
}

// Where a tensor of the model comes from: call `node` of a layer.
struct Reference {
  std::string layer;
  int64_t node = 0;
};
Reference reference_of(const Json& j) {
  if (!j.is_array() || j.size() < 3 || !j[0].is_string() || !j[1].is_number_integer() || !j[2].is_number_integer()) malformed(format("{} does not name a tensor", brief(j)));
  if (j[2].get<double>() != 0) throw Error(Code::kUnsupported, format("{}: a second result of a layer", brief(j)));
  const double node = j[1].get<double>();
  if (node < 0 || node > 1e6) malformed(format("{} does not name a tensor", brief(j)));
  return {j[0].get<std::string>(), j[1].get<int64_t>()};
}

struct PlannedCall {
  std::vector<Reference> inputs;
  CallOptions options;
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
  if (is_tensor(j)) to.push_back(reference_of(member(member(j, "config", "a tensor"), "keras_history", "a tensor")));
  else if (j.is_array())
    for (const Json& e : j) tensors_in(e, to);
}

PlannedCall planned_call(const Json& node, const std::string& who) {
  PlannedCall p;
  const Json& args = member(node, "args", format("a call of {}", who));
  tensors_in(args, p.inputs);
  if (args.is_array())
    for (const Json& a : args)
      if (!is_tensor(a) && !a.is_array() && !a.is_null()) throw Error(Code::kUnsupported, format("{} is called with {}", who, brief(a)));
  const Json* kwargs = find(node, "kwargs");
  if (kwargs && kwargs->is_object())
    for (const char* key : {"query", "inputs", "value", "key"})
      if (const Json* v = find(*kwargs, key)) tensors_in(*v, p.inputs);
  if (kwargs && kwargs->is_object())
    for (const auto& [key, value] : kwargs->items()) {
      if (key == "query" || key == "inputs" || key == "value" || key == "key" || value.is_null()) continue;
      if (key == "training" && value.is_boolean()) continue;  // Keras's models put their own mode in its place
      if (key == "use_causal_mask" && value.is_boolean()) p.options.use_causal_mask = value.get<bool>();
      else if (key == "return_attention_scores" && value == false) continue;
      else throw Error(Code::kUnsupported, format("{} is called with {} = {}", who, key, brief(value)));
    }
  return p;
}

std::vector<Reference> ends_of(const Json& config, const char* key) {
  const Json& j = member(config, key, "the model");
  std::vector<Reference> ends;
  if (j.is_array() && !j.empty() && j[0].is_string()) ends.push_back(reference_of(j));
  else if (j.is_array())
    for (const Json& e : j) ends.push_back(reference_of(e));
  else throw Error(Code::kUnsupported, format("{} = {}: only lists are known", key, brief(j)));
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
      p.result = input_of(inner, type);
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
    if (it == layers.end() || size_t(r.node) >= it->second.calls.size()) malformed(format("there is no call {} of a layer \"{}\"", r.node, r.layer));
    return it->second.calls[size_t(r.node)];
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
      for (const Reference& in : p.inputs) xs.push_back(at(in).result);
      p.result = call(layers.find(r.layer)->second.layer, std::move(xs), p.options);
      p.open = false;
      stack.pop_back();
    }
    return at(wanted).result;
  };
  std::vector<SymbolicTensor> inputs, outputs;
  for (const Reference& r : ends_of(config, "input_layers")) inputs.push_back(make(r));
  for (const Reference& r : ends_of(config, "output_layers")) outputs.push_back(make(r));
  const Json* name = find(config, "name");
  return make_network(std::move(inputs), std::move(outputs), name && name->is_string() ? name->get<std::string>() : "");
}

std::shared_ptr<Network> network_of(const Json& model, int depth) {
  if (depth > 8) malformed("models nest more than 8 deep");
  if (!model.is_object()) malformed(brief(model));
  const std::string type = text_of(member(model, "class_name", "it"), "class_name");
  const Json& config = member(model, "config", type);
  if (type == "Sequential") return sequential_of(config, model);
  if (type == "Functional" || type == "Model") return functional_of(config, depth);
  throw Error(Code::kUnsupported, format("a model of class {} is not here yet", type)).hint("known are Sequential and Functional");
}

}  // namespace

std::shared_ptr<Network> network_from_json(std::string_view text) {
  expect_shallow(text);
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) malformed("it cannot be parsed");
  try {
    return network_of(json, 0);
  } catch (const nlohmann::json::exception& e) {
    malformed(e.what());
  }
}

}  // namespace millpond::nn
