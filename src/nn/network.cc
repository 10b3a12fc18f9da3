#include "nn/network.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/assert.h"
#include "base/format.h"

namespace millpond {
namespace nn {

// A long chain of calls would otherwise be freed by as deep a recursion.
CallNode::~CallNode() {
  std::vector<SymbolicTensor> rest = std::move(inputs);
  while (!rest.empty()) {
    SymbolicTensor t = std::move(rest.back());
    rest.pop_back();
    if (t.node() && t.node().use_count() == 1) {
      auto& more = const_cast<CallNode&>(*t.node()).inputs;
      std::move(more.begin(), more.end(), std::back_inserter(rest));
      more.clear();
    }
  }
}

namespace {

// What a call takes or gives, tensor by tensor, and the masks of those that have one.
struct Types {
  std::vector<TensorType> tensors;
  std::vector<std::optional<TensorType>> masks;
  std::vector<std::vector<size_t>> made_from =
      {};  // of what a call gives: the operands whose masks each mask is made from
  bool operator==(const Types&) const = default;

  template <class F>
  void each(F&& f) {
    for (TensorType& t : tensors) f(t);
    for (auto& m : masks)
      if (m) f(*m);
  }
};

// Which of these inputs of a graph a value is made from.
std::vector<size_t> reached(Value v, std::span<const Value> inputs) {
  std::unordered_set<const graph::Node*> seen{v.node};
  for (std::vector<const graph::Node*> todo{v.node}; !todo.empty();) {
    const graph::Node* n = todo.back();
    todo.pop_back();
    for (const Value x : n->inputs)
      if (seen.insert(x.node).second) todo.push_back(x.node);
  }
  std::vector<size_t> indices;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && seen.contains(inputs[i].node)) indices.push_back(i);
  return indices;
}

// What the layer gives for operands of these types, all known: its call is tried in a graph that nobody will run.
Types tried(LayerImpl& layer, const Types& types, const CallOptions& options) {
  graph::Graph graph;
  Builder b(graph);
  CallContext context(b, false);
  std::vector<Value> xs, masks;
  for (size_t i = 0; i < types.tensors.size(); ++i) {
    xs.push_back(b.input("x" + std::to_string(i), types.tensors[i]));
    masks.push_back(types.masks[i] ? b.input("mask" + std::to_string(i), *types.masks[i]) : Value());
    if (masks[i]) context.set_mask(xs[i], masks[i]);
  }
  Types results;
  for (const Value v : context.call(layer, xs, options)) {
    results.tensors.push_back(v.type());
    const Value mask = context.mask_of(v);
    results.masks.push_back(mask ? std::optional(mask.type()) : std::nullopt);
    results.made_from.push_back(mask ? reached(mask, masks) : std::vector<size_t>());
  }
  return results;
}

// None becomes `size`; where `beside`, what another operand of as many dimensions has there, if that is known and not 1
// (which broadcasts).
Types closed(const Types& types, int64_t size, bool beside) {
  Types all = types;
  all.each([&](TensorType& t) {
    for (int axis = 0; axis < t.shape.rank(); ++axis) {
      if (t.shape[axis] != None) continue;
      int64_t here = size;
      for (const TensorType& other : types.tensors)
        if (beside && other.shape.rank() == t.shape.rank() && other.shape[axis] != None && other.shape[axis] != 1)
          here = other.shape[axis];
      t.shape = t.shape.with(axis, here);
    }
  });
  return all;
}

// Sizes that stand for None while a call is tried. Two of them tell which dimensions of a result depend on it. They are
// divisible by what nets divide by, larger than windows and strides of several layers together, and not so large that a
// constant of their square (a causal mask) would be felt.
constexpr int64_t kOneSize = 480, kOtherSize = 960;

Types inferred(LayerImpl& layer, const Types& types, const CallOptions& options) {
  if (std::ranges::all_of(types.tensors, [](const TensorType& t) { return t.shape.known(); }))
    return tried(layer, types, options);
  const auto try_with = [&](int64_t size, bool beside) {
    try {
      return tried(layer, closed(types, size, beside), options);
    } catch (Error& e) {
      std::string shapes;
      for (const TensorType& t : types.tensors)
        shapes += (shapes.empty() ? "" : " and ") + to_string(t.shape.slice(1, t.shape.rank()));
      e.add("tried", format("samples of {}, with {} for None", shapes, size));
      throw;
    }
  };
  bool beside = false;
  Types one;
  try {
    one = try_with(kOneSize, false);
  } catch (const Error&) {  // None may have to be what another operand has
    if (closed(types, kOneSize, true) == closed(types, kOneSize, false)) throw;
    beside = true;
    one = try_with(kOneSize, true);
  }
  Types other = try_with(kOtherSize, beside);
  std::vector<const TensorType*> others;
  other.each([&](TensorType& t) { others.push_back(&t); });
  size_t at = 0;
  one.each([&](TensorType& t) {
    const TensorType* o = at < others.size() ? others[at++] : nullptr;
    if (!o || o->shape.rank() != t.shape.rank() || o->dtype != t.dtype)
      throw Error(Code::kUnsupported,
                  format("{} gives other numbers of tensors or of dimensions where None is {} than where it is {}",
                         layer.who(), kOneSize, kOtherSize));
    for (int axis = 0; axis < t.shape.rank(); ++axis)
      if (t.shape[axis] != o->shape[axis]) t.shape = t.shape.with(axis, None);
  });
  return one;
}

// What the mask of a call's result is made from: of those operands' masks, or of its own input.
std::vector<Mask::Source> mask_sources(const LayerImpl& layer, std::span<const SymbolicTensor> inputs,
                                       std::span<const size_t> made_from) {
  if (const std::optional<double> value = layer.masks_value()) return {{inputs[0], *value}};
  std::vector<Mask::Source> all;
  for (const size_t i : made_from)
    for (const Mask::Source& s : mask_of(inputs[i]).from)
      if (std::ranges::find(all, s) == all.end()) all.push_back(s);
  if (all.empty()) all.push_back({inputs[0], 0});
  return all;
}

// Which calls Keras's operators read to make the mask of a call's result.
std::vector<std::pair<const CallNode*, int>> behind_mask(const LayerImpl& layer, std::span<const SymbolicTensor> inputs,
                                                         const TensorType& mask) {
  if (layer.masks_value())
    return {{inputs[0].node().get(), type_of(inputs[0]).shape.rank() > mask.shape.rank() ? 2 : 1}};
  std::map<const CallNode*, int> farthest;
  const auto read = [&](const CallNode* n, int away) { farthest[n] = std::max(farthest[n], away); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Mask& own = mask_of(inputs[i]);
    const LayerImpl::MaskOperators away = layer.mask_operators(i, inputs.size(), !own.from.empty());
    for (const auto& [n, before] : own.behind) read(n, before + away.mask);
    if (away.operand) read(inputs[i].node().get(), away.operand);
  }
  return {farthest.begin(), farthest.end()};
}

}  // namespace

std::shared_ptr<CallNode> make_call(const std::shared_ptr<LayerImpl>& layer, std::vector<SymbolicTensor> inputs,
                                    CallOptions options) {
  std::vector<TensorType> types;
  for (const SymbolicTensor& t : inputs) {
    if (!t) throw Error(Code::kUsage, format("{} \"{}\" is called on an empty tensor", layer->type, layer->name));
    types.push_back(type_of(t));
  }
  if (types.empty()) throw Error(Code::kUsage, format("{} \"{}\" is called on nothing", layer->type, layer->name));
  ensure_built(*layer, types);
  auto node = std::make_shared<CallNode>();
  layer->adjust(options);
  Types operands{types, {}};
  for (const SymbolicTensor& t : inputs)
    operands.masks.push_back(mask_of(t).from.empty() ? std::nullopt : std::optional(mask_of(t).type));
  const Types results = inferred(*layer, operands, options);
  node->types = results.tensors;
  if (std::ranges::any_of(results.masks, [](const auto& m) { return m.has_value(); }))
    for (size_t i = 0; i < results.masks.size(); ++i)
      node->masks.push_back(results.masks[i]
                                ? Mask{*results.masks[i], mask_sources(*layer, inputs, results.made_from[i]),
                                       behind_mask(*layer, inputs, *results.masks[i])}
                                : Mask{});
  for (const TensorType& t : node->types) expect_countable(*layer, t.shape, "a result");
  node->layer = layer;
  node->inputs = std::move(inputs);
  node->options = options;
  node->number = layer->calls++;
  return node;
}

SymbolicTensor call(const std::shared_ptr<LayerImpl>& layer, std::vector<SymbolicTensor> inputs, CallOptions options) {
  auto node = make_call(layer, std::move(inputs), options);
  if (node->types.size() != 1)
    throw Error(Code::kUsage, format("{} gives {} tensors, where one is wanted", layer->who(), node->types.size()))
        .hint("call it with call_all, which returns all of them");
  return SymbolicTensor(std::move(node), 0);
}

const TensorType& type_of(const SymbolicTensor& t) { return t.node()->types[size_t(t.output())]; }
const Mask& mask_of(const SymbolicTensor& t) {
  static const Mask kNone;
  return t.node()->masks.empty() ? kNone : t.node()->masks[size_t(t.output())];
}

bool Network::open() const {
  return std::ranges::any_of(inputs, [](const SymbolicTensor& t) { return !type_of(t).shape.known(); });
}

std::optional<Shape> fitted(const Shape& want, const Shape& got) {
  const auto goes = [](int64_t a, int64_t b) { return a == b || a == None; };
  const auto begins = [&](int rank) {
    for (int i = 0; i < rank; ++i)
      if (!goes(want[i], got[i])) return false;
    return true;
  };
  const auto filled = [&](Shape shape, int rank) {
    for (int i = 0; i < rank; ++i) shape = shape.with(i, got[i]);
    return shape;
  };
  if (want.rank() == got.rank() && begins(want.rank())) return filled(want, want.rank());
  if (want.rank() == got.rank() + 1 && goes(want.back(), 1) && begins(got.rank()))
    return filled(want, got.rank()).with(-1, 1);
  if (got.rank() == want.rank() + 1 && got.back() == 1 && begins(want.rank())) return filled(want, want.rank());
  return {};
}

std::vector<TensorType> output_types(const Network& net, std::span<const Shape> samples) {
  std::vector<TensorType> types;
  if (!net.open()) {
    for (const SymbolicTensor& t : net.outputs) types.push_back(type_of(t));
    return types;
  }
  graph::Graph graph;
  Builder b(graph);
  CallContext context(b, false);
  std::vector<Value> xs;
  for (size_t i = 0; i < net.inputs.size(); ++i)
    xs.push_back(b.input("x" + std::to_string(i), {type_of(net.inputs[i]).dtype, samples[i].with_front(1)}));
  for (const Value v : net.trace(context, xs)) types.push_back(v.type());
  return types;
}

namespace {
// "Dense "a", Scale "a"": which two layers share a name.
std::string two_of(const std::vector<std::shared_ptr<LayerImpl>>& layers, const std::string& name) {
  std::string all;
  for (const auto& l : layers)
    if (l->name == name) all += (all.empty() ? "" : " and ") + l->who();
  return all;
}
}  // namespace

// Keras's map_graph: layers by their distance from the outputs, the farthest first; among equals in the order in which
// a depth-first walk from the outputs meets them. The operators that make masks are in that graph too.
void Network::connect() {
  if (inputs.empty() || outputs.empty())
    throw Error(Code::kUsage, format("the model \"{}\" needs at least one input and one output", name));
  for (const SymbolicTensor& t : inputs)
    if (!t || !dynamic_cast<const InputImpl*>(t.node()->layer.get()))
      throw Error(Code::kUsage, format("the model \"{}\" is given an input that was not made by Input", name))
          .hint("begin the model at Input({...})");
  std::vector<const CallNode*> finished;  // inputs first
  std::map<const CallNode*, std::shared_ptr<const CallNode>> owners;
  std::map<const LayerImpl*, int> met;
  std::unordered_set<const CallNode*> seen;
  struct Frame {
    std::shared_ptr<const CallNode> node;
    size_t next = 0;
  };
  for (const SymbolicTensor& out : outputs) {
    if (!out) throw Error(Code::kUsage, format("the model \"{}\" is given an empty output", name));
    std::vector<Frame> stack;  // not recursion: a model may be deep
    const auto enter = [&](const std::shared_ptr<const CallNode>& n) {
      if (!seen.insert(n.get()).second) return;
      met.emplace(n->layer.get(), int(met.size()));
      owners[n.get()] = n;
      stack.push_back({n});
    };
    enter(out.node());
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next < f.node->inputs.size()) {
        enter(f.node->inputs[f.next++].node());
      } else {
        finished.push_back(f.node.get());
        stack.pop_back();
      }
    }
  }
  std::map<const CallNode*, int> depth;
  std::map<const LayerImpl*, int> layer_depth;
  for (auto it = finished.rbegin(); it != finished.rend(); ++it) {
    const CallNode* n = *it;
    const int d = std::max(depth[n], layer_depth.contains(n->layer.get()) ? layer_depth[n->layer.get()] : 0);
    depth[n] = layer_depth[n->layer.get()] = d;
    const auto feeds = [&](const CallNode* from, int away) { depth[from] = std::max(depth[from], d + away); };
    for (const SymbolicTensor& in : n->inputs) {
      feeds(in.node().get(), 1);
      if (!n->layer->takes_masks(n->inputs.size())) continue;
      for (const auto& [from, away] : mask_of(in).behind) feeds(from, 1 + away);
    }
  }
  calls.clear();
  layers.clear();
  for (const CallNode* n : finished) calls.push_back(owners[n]);
  for (const SymbolicTensor& t : inputs)
    if (!met.contains(t.node()->layer.get())) {  // an input that no output needs
      met.emplace(t.node()->layer.get(), -1);
      layer_depth[t.node()->layer.get()] = 0;
      calls.insert(calls.begin(), t.node());
    }
  for (const auto& n : calls) {
    if (n->inputs.empty() &&
        std::none_of(inputs.begin(), inputs.end(), [&](const SymbolicTensor& t) { return t.node() == n; }))
      throw Error(Code::kUsage, format("the model \"{}\" needs the input \"{}\", which is not among its inputs", name,
                                       n->layer->name));
    if (std::find(layers.begin(), layers.end(), n->layer) == layers.end()) layers.push_back(n->layer);
  }
  std::stable_sort(layers.begin(), layers.end(), [&](const auto& a, const auto& b) {
    const int da = layer_depth[a.get()], db = layer_depth[b.get()];
    return da != db ? da > db : met[a.get()] < met[b.get()];
  });
  std::set<std::string_view> names;
  for (const auto& l : layers)
    if (!names.insert(l->name).second)
      throw Error(Code::kUsage, format("two layers of the model \"{}\" have the name \"{}\": {}", name, l->name,
                                       two_of(layers, l->name)))
          .hint("give one of them another name");
}

namespace {
bool same_sample(const Shape& said, const Shape& now) {
  for (int i = 1; i < said.rank(); ++i)
    if (said[i] != None && said[i] != now[i]) return false;
  return true;
}

// A layer that was called symbolically has said what it gives; for any batch that must be the same.
void check_results(const CallNode& n, std::span<const Value> made) {
  for (size_t i = 0; i < std::max(made.size(), n.types.size()); ++i) {
    if (made.size() == n.types.size() && made[i].dtype() == n.types[i].dtype &&
        made[i].shape().rank() == n.types[i].shape.rank() &&
        (made[i].shape().rank() == 0 || same_sample(n.types[i].shape, made[i].shape())))
      continue;
    if (made.size() != n.types.size())
      throw Error(Code::kShape, format("{} gives {} tensors now, but {} when it was called", n.layer->who(),
                                       made.size(), n.types.size()));
    throw Error(Code::kShape, format("{} gives {} now, but {} for a batch of one when it was called", n.layer->who(),
                                     to_string(made[i].type()), to_string(n.types[i])))
        .hint("what a sample gives may not depend on the batch");
  }
}
}  // namespace

std::vector<Value> CallContext::call(LayerImpl& layer, const std::vector<Value>& arguments,
                                     const CallOptions& options) {
  const bool nested = dynamic_cast<const Network*>(&layer) != nullptr;
  const Builder::Scope scope(builder_, nested ? builder_.layer() : layer.name, builder_.phase());
  const CallOptions before = call_;
  call_.use_causal_mask = options.use_causal_mask;
  if (options.training) call_.training = options.training;
  const std::vector<Value> made = call_in_policy(layer, *this, arguments);
  call_ = before;
  if (layer.keeps_mask())
    for (const Value x : arguments)
      if (const Value mask = mask_of(x)) {
        for (const Value v : made)
          if (v != x && !mask_of(v)) set_mask(v, mask);
        break;
      }
  return made;
}

std::vector<Value> Network::trace(CallContext& c, std::span<const Value> xs) const {
  MP_ASSERT(xs.size() == inputs.size());
  std::unordered_map<const CallNode*, std::vector<Value>> values;
  const auto value_of = [&](const SymbolicTensor& t) { return values.at(t.node().get())[size_t(t.output())]; };
  for (size_t i = 0; i < inputs.size(); ++i) values[inputs[i].node().get()] = {xs[i]};
  for (const auto& n : calls) {
    if (n->inputs.empty()) continue;
    std::vector<Value> arguments;
    for (const SymbolicTensor& t : n->inputs) arguments.push_back(value_of(t));
    check_results(*n, values[n.get()] = c.call(*n->layer, arguments, n->options));
  }
  std::vector<Value> results;
  for (const SymbolicTensor& t : outputs) results.push_back(value_of(t));
  return results;
}

Values Network::call(CallContext& c, std::span<const Value> xs) {
  if (xs.size() != inputs.size())
    throw Error(Code::kUsage,
                format("the model \"{}\" has {} inputs, but is called on {}", name, inputs.size(), xs.size()));
  for (size_t i = 0; i < xs.size(); ++i) {
    const Shape &want = type_of(inputs[i]).shape, &got = xs[i].shape();
    if (got.rank() != want.rank() || !same_sample(want, got))
      throw Error(Code::kShape, format("the model \"{}\" wants samples of {}, but is called on {}", name,
                                       want.slice(1, want.rank()), got.slice(1, got.rank())));
  }
  return trace(c, xs);
}

std::shared_ptr<Network> make_network(std::vector<SymbolicTensor> inputs, std::vector<SymbolicTensor> outputs,
                                      std::string name, bool sequential) {
  auto net = std::make_shared<Network>();
  net->type = sequential ? "Sequential" : "Functional";
  net->name = name.empty() ? automatic_name(net->type) : std::move(name);
  net->inputs = std::move(inputs);
  net->outputs = std::move(outputs);
  net->sequential = sequential;
  net->connect();
  net->built = true;
  return net;
}

std::shared_ptr<Network> make_sequential(std::span<const Layer> layers, std::string name) {
  if (layers.empty()) throw Error(Code::kUsage, "the model has no layers");
  SymbolicTensor x;
  SymbolicTensor first;
  for (const Layer& l : layers) {
    if (dynamic_cast<InputImpl*>(l.impl().get())) {
      if (x)
        throw Error(Code::kUsage, format("Input \"{}\" stands behind other layers", l.name())).hint("put it first");
      first = x = tensor_of(l.impl());
      continue;
    }
    MP_ASSERT(x);
    x = call(l.impl(), {x});
  }
  return make_network({first}, {x}, std::move(name), true);
}

namespace {
void collect(const LayerImpl& layer, std::vector<OwnedWeight>& all, std::unordered_set<const WeightState*>& seen) {
  if (const auto* inner = dynamic_cast<const Network*>(&layer)) {
    for (const auto& l : inner->layers) collect(*l, all, seen);
    return;
  }
  for (const Weight& w : layer.weights())
    if (seen.insert(w.get()).second) all.push_back({w, &layer});
}
}  // namespace

std::vector<OwnedWeight> owned_weights(const Network& net) {
  std::vector<OwnedWeight> all;
  std::unordered_set<const WeightState*> seen;
  collect(net, all, seen);
  return all;
}

std::vector<Weight> weights_of(const Network& net) {
  std::vector<Weight> all;
  for (OwnedWeight& w : owned_weights(net)) all.push_back(std::move(w.weight));
  return all;
}

void set_weights(std::span<const Weight> weights, const std::vector<Tensor>& values, const std::string& whose) {
  if (weights.size() != values.size())
    throw Error(Code::kShape,
                format("{} has {} weights, but {} arrays are given", whose, weights.size(), values.size()));
  for (size_t i = 0; i < weights.size(); ++i)
    if (values[i].shape() != weights[i]->variable.type().shape)
      throw Error(Code::kShape, format("{}: array {} has the shape {}, but {} has {}", whose, i, values[i].shape(),
                                       weights[i]->variable.account(), weights[i]->variable.type().shape));
  materialize(weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    const TensorType& t = weights[i]->variable.type();
    const Tensor converted = values[i].dtype() == t.dtype ? values[i] : values[i].astype(t.dtype);
    weights[i]->variable.write(converted);
  }
}

}  // namespace nn

Shape SymbolicTensor::shape() const {
  if (!node_) throw Error(Code::kUsage, "an empty tensor has no shape");
  const Shape& s = nn::type_of(*this).shape;
  return s.slice(1, s.rank());
}
DType SymbolicTensor::dtype() const {
  if (!node_) throw Error(Code::kUsage, "an empty tensor has no dtype");
  return nn::type_of(*this).dtype;
}

SymbolicTensor Layer::operator()(const SymbolicTensor& x, CallOptions options) const {
  return nn::call(impl_, {x}, options);
}
SymbolicTensor Layer::operator()(const std::vector<SymbolicTensor>& xs, CallOptions options) const {
  return nn::call(impl_, xs, options);
}
std::vector<SymbolicTensor> Layer::call_all(const std::vector<SymbolicTensor>& xs, CallOptions options) const {
  const std::shared_ptr<const nn::CallNode> node = nn::make_call(impl_, xs, options);
  std::vector<SymbolicTensor> all;
  for (size_t i = 0; i < node->types.size(); ++i) all.emplace_back(node, int(i));
  return all;
}

}  // namespace millpond
