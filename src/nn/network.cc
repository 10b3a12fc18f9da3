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

std::shared_ptr<CallNode> make_call(const std::shared_ptr<LayerImpl>& layer, std::vector<SymbolicTensor> inputs,
                                    CallOptions options) {
  std::vector<TensorType> types;
  for (const SymbolicTensor& t : inputs) {
    if (!t) throw Error(Code::kUsage, format("{} \"{}\" is called on an empty tensor", layer->type, layer->name));
    types.push_back(type_of(t));
  }
  if (types.empty()) throw Error(Code::kUsage, format("{} \"{}\" is called on nothing", layer->type, layer->name));
  ensure_built(*layer, types);
  graph::Graph graph;
  Builder b(graph);
  CallContext context(b, false);
  std::vector<Value> xs;
  for (size_t i = 0; i < types.size(); ++i) xs.push_back(b.input("x" + std::to_string(i), types[i]));
  const Builder::Scope scope(b, layer->name, graph::Phase::kForward);
  auto node = std::make_shared<CallNode>();
  for (Value v : call_in_policy(*layer, context, xs)) node->types.push_back(v.type());
  for (const TensorType& t : node->types) expect_countable(*layer, t.shape, "a result");
  node->layer = layer;
  node->inputs = std::move(inputs);
  layer->adjust(options);
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

TensorType Network::input_type(size_t i, int64_t batch) const {
  const TensorType& one = type_of(inputs[i]);
  return {one.dtype, one.shape.with(0, batch)};
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
// a depth-first walk from the outputs meets them.
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
    for (const SymbolicTensor& in : n->inputs) depth[in.node().get()] = std::max(depth[in.node().get()], d + 1);
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
// A layer that was called symbolically has said what it gives; for any batch that must be the same.
void check_results(const CallNode& n, std::span<const Value> made) {
  for (size_t i = 0; i < std::max(made.size(), n.types.size()); ++i) {
    if (made.size() == n.types.size() && made[i].dtype() == n.types[i].dtype &&
        made[i].shape().rank() == n.types[i].shape.rank() &&
        (made[i].shape().rank() == 0 || made[i].shape().without(0) == n.types[i].shape.without(0)))
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

std::vector<Value> Network::trace(CallContext& c, std::span<const Value> xs) const {
  MP_ASSERT(xs.size() == inputs.size());
  std::unordered_map<const CallNode*, std::vector<Value>> values;
  const auto value_of = [&](const SymbolicTensor& t) { return values.at(t.node().get())[size_t(t.output())]; };
  for (size_t i = 0; i < inputs.size(); ++i) values[inputs[i].node().get()] = {xs[i]};
  const std::string outer = c.builder().layer();
  for (const auto& n : calls) {
    if (n->inputs.empty()) continue;
    std::vector<Value> arguments;
    for (const SymbolicTensor& t : n->inputs) arguments.push_back(value_of(t));
    const bool nested = dynamic_cast<const Network*>(n->layer.get()) != nullptr;
    const Builder::Scope scope(c.builder(), nested ? outer : n->layer->name, c.builder().phase());
    const CallOptions before = c.call_;
    c.call_.use_causal_mask = n->options.use_causal_mask;
    if (n->options.training) c.call_.training = n->options.training;
    const bool was_training = c.training_;
    const std::vector<Value>& made = values[n.get()] = call_in_policy(*n->layer, c, arguments);
    check_results(*n, made);
    if (n->layer->keeps_mask())
      for (const Value x : arguments)
        if (const Value mask = c.mask_of(x)) {
          for (const Value v : made)
            if (v != x && !c.mask_of(v)) c.set_mask(v, mask);
          break;
        }
    c.call_ = before;
    c.training_ = was_training;
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
    if (got.slice(1, got.rank()) != want.slice(1, want.rank()))
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
