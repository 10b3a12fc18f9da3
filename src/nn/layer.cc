#include "nn/layer.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <map>
#include <mutex>

#include "base/assert.h"
#include "base/format.h"
#include "base/seed.h"
#include "millpond/random.h"
#include "nn/initialize.h"
#include "nn/model_json.h"
#include "nn/network.h"
#include "ops/cast.h"
#include "ops/reshape.h"

namespace millpond {
namespace {
// How often each kind of layer was named automatically. Made when it is first asked for: a layer of static life may be
// made before anything of this file is.
struct Names {
  std::mutex mutex;
  std::map<std::string, int, std::less<>> used;
};
Names& names() {
  static Names all;
  return all;
}
}  // namespace

namespace {
std::atomic<void (*)()> clearing{nullptr};
}
void nn::on_clear_session(void (*f)()) { clearing = f; }

void clear_session() {
  if (auto* const f = clearing.load()) f();
  const std::lock_guard lock(names().mutex);
  names().used.clear();
}

namespace nn {

std::string snake_case(std::string_view type) {  // Keras's: "MaxPooling2D" -> "max_pooling2d", "ReLU" -> "re_lu"
  std::string out;
  for (size_t i = 0; i < type.size(); ++i) {
    const char c = type[i];
    const bool upper = std::isupper(static_cast<unsigned char>(c));
    const auto lower = [&](size_t j) { return j < type.size() && std::islower(static_cast<unsigned char>(type[j])); };
    const bool before_small =
        i > 0 && (lower(i - 1) || (upper && lower(i + 1) && !std::isdigit(static_cast<unsigned char>(type[i - 1]))));
    if (upper && before_small) out += '_';
    out += char(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string automatic_name(std::string_view type) {
  std::string base = snake_case(type);
  const std::lock_guard lock(names().mutex);
  const int n = names().used[base]++;
  return n ? base + "_" + std::to_string(n) : base;
}

Value CallContext::stored(const Weight& w) {
  Value& v = values_[w.get()];
  if (!v) v = builder_.variable(w->variable.account(), w->variable.type(), &w->variable);
  return v;
}

Value CallContext::read(const Weight& w) {
  const Value v = stored(w);
  return is_floating(v.dtype()) ? ops::cast(builder_, v, compute_) : v;
}

void CallContext::assign(const Weight& w, Value value) {
  value = ops::cast(builder_, value, w->variable.type().dtype);
  values_[w.get()] = value;
  for (Assignment& a : assignments_)
    if (a.weight == w) return void(a.value = value);
  assignments_.push_back({w, value});
}

Value CallContext::mask_of(Value v) const {
  const auto found = masks_.find(v);
  return found == masks_.end() ? Value{} : found->second;
}
void CallContext::set_mask(Value v, Value mask) {
  if (mask)
    masks_[v] = mask;
  else
    masks_.erase(v);
}

Value CallContext::counter() {
  if (!counter_value_) {
    const TensorType type{DType::kInt32, {}};
    counter_value_ =
        counter_ ? builder_.variable(counter_->account(), type, counter_) : builder_.input("counter", type);
  }
  return counter_value_;
}

void CallContext::limit(Value index, int64_t count, const std::string& layer) {
  const graph::Node* n = index.node;
  while (n->role == graph::Role::kOperator && (n->op->name() == "cast" || n->op->name() == "reshape"))
    n = n->input(0).node;
  if (n->role == graph::Role::kInput) limits_.push_back({n->name, count, layer});
}

Weight LayerImpl::add_weight(std::string weight, Shape shape, const Initializer& init, bool is_trainable,
                             std::string group) {
  if (!shape.known())
    throw Error(Code::kShape, format("{}: its weight \"{}\" would have the shape {}", who(), weight, shape))
        .hint("a weight's dimensions must be known when the model is built: give Input a shape without None there");
  expect_countable(*this, shape, weight.c_str());
  std::string account = format("weights/{}/{}{}{}", name, group, group.empty() ? "" : "/", weight);
  auto w = std::shared_ptr<WeightState>(new WeightState{
      std::move(weight), std::move(group), name, is_trainable, init, init.own_seed ? *init.own_seed : draw_seed(),
      runtime::Variable(std::move(account), {policy.variable, shape})});
  weights_.push_back(w);
  return w;
}

std::vector<Weight> LayerImpl::weights() const {
  std::vector<Weight> all;
  for (const bool wanted : {true, false})
    for (const Weight& w : weights_)
      if (w->trainable == wanted) all.push_back(w);
  for (const auto& child : children())
    for (const Weight& w : child->weights()) all.push_back(w);
  return all;
}

void LayerImpl::describe(Describer& d) {
  d.option("name", name);
  d.option("trainable", trainable);
  d.dtype_policy("dtype", policy);
  options(d);
  d.outdated({"batch_input_shape", "batch_shape", "autocast"});
}

std::string LayerImpl::who() const { return name.empty() ? type : format("{} \"{}\"", type, name); }

void settle_layer(LayerImpl& layer) {
  check_options(layer, layer.who());
  layer.settle();
  if (layer.name.empty()) layer.name = automatic_name(layer.type);
}

void ensure_built(LayerImpl& layer, std::span<const TensorType> inputs) {
  if (layer.built) return;
  layer.build(inputs);
  layer.built = true;
}

void materialize(std::span<const Weight> weights) {
  std::vector<runtime::Variable*> variables;
  std::vector<Weight> fresh;
  for (const Weight& w : weights) {
    if (w->variable.placed() || std::find(fresh.begin(), fresh.end(), w) != fresh.end()) continue;
    variables.push_back(&w->variable);
    fresh.push_back(w);
  }
  runtime::place(variables, "weights");
  for (const Weight& w : fresh) fill(*w);
}

void fill(WeightState& w) {
  w.variable.overwrite([&](Tensor& values) {
    initialize(w.matrix ? values.reshaped(*w.matrix) : values, w.initializer, w.seed);
    if (w.then) w.then(values);
  });
}

Value as_float(CallContext& c, Value x) { return ops::cast(c.builder(), x, c.compute()); }

Values call_in_policy(LayerImpl& layer, CallContext& c, std::vector<Value> inputs) {
  const bool inner = dynamic_cast<const Network*>(&layer);  // its layers have policies of their own
  const CallContext::Computing in(c, layer.policy.compute);
  if (!inner)
    for (Value& v : inputs)
      if (is_floating(v.dtype()) && v.dtype() != c.compute()) {
        const Value mask = c.mask_of(v);
        v = ops::cast(c.builder(), v, c.compute());
        if (mask) c.set_mask(v, mask);
      }
  Values made = layer.call(c, inputs);
  // A mask belongs to a value: a layer that drops masks and has nothing to do gives a value of its own.
  if (!inner && !layer.keeps_mask())
    for (Value& v : made)
      if (std::ranges::find(inputs, v) != inputs.end() && c.mask_of(v))
        v = c.builder().add(std::make_shared<ops::Reshape>(v.shape()), {v});
  return made;
}

namespace {
Shape sample(const TensorType& t) { return t.shape.slice(1, t.shape.rank()); }
}  // namespace

int64_t known_dimension(const LayerImpl& layer, const TensorType& x, int axis) {
  const int a = canonical_axis(layer, axis, x.shape.rank());
  if (x.shape[a] != None) return x.shape[a];
  const bool last = a == x.shape.rank() - 1;
  throw Error(Code::kShape, format("{}: its weights need to know {} of a sample, but that has the shape {}",
                                   layer.who(), last ? "the last dimension" : format("dimension {}", a - 1), sample(x)))
      .hint(
          "give Input a shape without None there, or put a layer in front whose result does not depend on it, "
          "such as GlobalAveragePooling2D");
}

void expect_rank(const LayerImpl& layer, const TensorType& x, int rank, const char* wanted) {
  if (x.shape.rank() == rank + 1) return;
  throw Error(Code::kShape,
              format("{} \"{}\": wants {}, but a sample has the shape {}", layer.type, layer.name, wanted, sample(x)))
      .with("layer", layer.name);
}

void expect_countable(const LayerImpl& layer, const Shape& shape, const char* what) {
  constexpr int64_t kMost = int64_t{1} << 48;
  int64_t n = 1;
  bool countable = true;
  for (const int64_t d : shape) countable &= !__builtin_mul_overflow(n, std::max<int64_t>(1, d), &n) && n <= kMost;
  if (!countable)
    throw Error(Code::kShape,
                format("{} \"{}\": {} of {} is more than any machine holds", layer.type, layer.name, what, shape));
}

int canonical_axis(const LayerImpl& layer, int axis, int rank) {
  const int a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    throw Error(Code::kUsage, format("{} \"{}\": axis is {}, but there are {} dimensions, the batch among them",
                                     layer.type, layer.name, axis, rank));
  return a;
}

}  // namespace nn

const std::string& Layer::name() const { return impl_->name; }
std::string_view Layer::type() const { return impl_->type; }
std::string Layer::get_config() const { return nn::to_text(nn::config_of(*impl_)); }
Layer Layer::from_config(std::string_view type, std::string_view config) {
  return Layer(nn::layer_from_json(std::string(type), nn::from_text(config, "a layer's options")));
}
bool Layer::trainable() const { return impl_->trainable; }
void Layer::set_trainable(bool trainable) {
  impl_->trainable = trainable;
  for (const auto& child : impl_->children()) Layer(child).set_trainable(trainable);
}

DTypePolicy Layer::dtype_policy() const { return impl_->policy; }
void Layer::set_dtype_policy(DTypePolicy policy) {
  if (impl_->calls > 0 || (impl_->built && !impl_->own_weights().empty()))
    throw Error(Code::kUsage, format("layer \"{}\" has been called, and its weights are {}", name(),
                                     to_string(impl_->policy.variable)))
        .hint("set its dtype policy before it is called, or set_dtype_policy for all layers before they are made");
  impl_->policy = policy;
  for (const auto& child : impl_->children()) Layer(child).set_dtype_policy(policy);
}

int64_t Layer::count_params() const {
  int64_t n = 0;
  for (const nn::Weight& w : impl_->weights()) n += w->variable.type().shape.size();
  return n;
}

std::vector<Tensor> Layer::get_weights() const {
  const auto weights = impl_->weights();
  nn::materialize(weights);
  std::vector<Tensor> copies;
  for (const nn::Weight& w : weights) copies.push_back(w->variable.copy("data/weights"));
  return copies;
}

void Layer::set_weights(const std::vector<Tensor>& values) {
  nn::set_weights(impl_->weights(), values, format("layer \"{}\"", name()));
}

std::vector<std::string> Layer::weight_names() const {
  std::vector<std::string> names;
  for (const nn::Weight& w : impl_->weights()) names.push_back(w->path());
  return names;
}

Padding::Padding(std::string_view name) {
  if (name != "same" && name != "valid")
    throw Error(Code::kUsage, format("padding \"{}\" is not known", name)).hint("say \"valid\" or \"same\"");
  same = name == "same";
}

}  // namespace millpond
