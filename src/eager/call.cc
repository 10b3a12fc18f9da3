#include "eager/call.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "eager/live.h"
#include "eager/range.h"
#include "millpond/activations.h"
#include "millpond/ops.h"
#include "nn/activate.h"
#include "nn/loss.h"
#include "nn/network.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace millpond {
namespace eager {

using graph::Builder;
using graph::Value;

namespace {

// A layer traced for operands of given types.
struct Traced {
  std::shared_ptr<Function> function;
  size_t results = 0;              // of the layer; the function's outputs behind them are masks and logits:
  std::vector<int> masks, logits;  // of each result, the output that it is; -1: none
  std::vector<char> softmax;       // the logits of a result went into softmax
  int counter = -1;                // which input counts calls, for what is random
  struct Limit {
    size_t input;
    int64_t count;
    std::string layer;
  };
  std::vector<Limit> limits;
  Bytes bytes;
  uint64_t used = 0;
};

/// What a layer keeps.
struct Calls {
  static constexpr size_t kMost = 64;
  std::unordered_map<graph::Key, std::shared_ptr<Traced>, graph::Key::Hash> traced;
  int32_t counter = 0;  // calls in training so far
  uint64_t clock = 0;
};

std::shared_ptr<Traced> trace(const Context& c, nn::LayerImpl& layer, std::span<const Ref> inputs,
                              const CallOptions& options) {
  std::vector<TensorType> types;
  for (const Ref& x : inputs) types.push_back(x->type);
  nn::ensure_built(layer, types);
  auto t = std::make_shared<Traced>();
  graph::Graph g;
  Builder b(g);
  nn::CallContext context(b, options.training.value_or(false));
  std::vector<Value> xs;
  for (size_t i = 0; i < inputs.size(); ++i) xs.push_back(b.input(format("x{}", i), types[i]));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]->mask) context.set_mask(xs[i], b.input(format("m{}", i), inputs[i]->mask->type));
  const std::vector<Value> made = context.call(layer, xs, options);
  t->results = made.size();
  t->masks.assign(made.size(), -1);
  t->logits.assign(made.size(), -1);
  t->softmax.assign(made.size(), 0);
  const auto output = [&](Value v) {
    g.outputs.push_back({format("out{}", g.outputs.size()), v});
    return int(g.outputs.size()) - 1;
  };
  for (const Value v : made) output(v);
  for (size_t i = 0; i < made.size(); ++i) {
    if (const Value mask = context.mask_of(made[i])) t->masks[i] = output(mask);
    const Value soft = nn::logits_of_softmax(made[i]), z = soft ? soft : nn::logits_of_sigmoid(made[i]);
    if (z && z.shape() == made[i].shape()) t->logits[i] = output(z), t->softmax[i] = bool(soft);
  }
  for (const auto& a : context.assignments()) {
    runtime::Variable& v = a.weight->variable;
    g.updates.push_back({b.variable(v.account(), v.type(), &v), a.value});
  }
  runtime::Options how;
  how.backend = &c.backend;
  passes::run_before_gradients(g, how.offered_passes());
  const std::vector<graph::Node*> all = g.inputs();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i]->name == "counter") t->counter = int(i);
    for (const auto& limit : context.limits())
      if (all[i]->name == limit.input) t->limits.push_back({i, limit.count, limit.layer});
  }
  const std::vector<nn::Weight> weights = layer.weights();
  nn::materialize(weights);
  for (const nn::Weight& w : weights) (void)live(w);  // from now on reads of it are known as this weight's
  const size_t count = g.outputs.size();
  t->function = std::make_shared<Function>(std::move(g), count);
  return t;
}

std::shared_ptr<Traced> find(Context& c, nn::LayerImpl& layer, std::span<const Ref> inputs,
                             const CallOptions& options) {
  if (!layer.eager) layer.eager = std::make_shared<Calls>();
  Calls& calls = *static_cast<Calls*>(layer.eager.get());
  graph::Key key;
  key.add(uint64_t(options.use_causal_mask) * 2 + options.training.value_or(false));
  key.add(uint64_t(inputs.size()));
  for (const Ref& x : inputs) {
    key.add(x->type);
    if (x->mask) key.add(x->mask->type);
    key.add(uint64_t(x->mask != nullptr));
  }
  const auto found = calls.traced.find(key);
  if (found != calls.traced.end()) {
    found->second->used = ++calls.clock;
    return found->second;
  }
  std::shared_ptr<Traced> made = trace(c, layer, inputs, options);
  made->used = ++calls.clock;
  while (calls.traced.size() >= Calls::kMost)
    calls.traced.erase(std::ranges::min_element(calls.traced, {}, [](const auto& t) { return t.second->used; }));
  calls.traced.emplace(key, made);
  return made;
}

// A model's inputs have dtypes, and as in fit a last dimension of 1 may come or go.
void fit_inputs(const nn::Network& net, std::vector<Ref>& inputs) {
  if (inputs.size() != net.inputs.size()) return;  // the call refuses it
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& want = nn::type_of(net.inputs[i]);
    const Shape& shape = inputs[i]->type.shape;
    if (inputs[i]->type.dtype != want.dtype) {
      const Ref mask = inputs[i]->mask;
      inputs[i] = ops::cast(outside(inputs[i]), want.dtype).impl();
      if (mask) inputs[i]->mask = mask;
    }
    if (shape.rank() == want.shape.rank() || shape.rank() == 0) continue;
    const std::optional<Shape> sample =
        nn::fitted(want.shape.slice(1, want.shape.rank()), shape.slice(1, shape.rank()));
    if (sample) inputs[i] = ops::reshape(outside(inputs[i]), sample->with_front(shape[0])).impl();
  }
}

}  // namespace

std::vector<Ref> call_layer(const std::shared_ptr<nn::LayerImpl>& layer, std::vector<Ref> inputs, CallOptions options) {
  if (inputs.empty()) throw Error(Code::kUsage, format("{} is called on nothing", layer->who()));
  layer->adjust(options);
  if (const auto* net = dynamic_cast<const nn::Network*>(layer.get())) fit_inputs(*net, inputs);
  Context& c = Context::get();
  std::shared_ptr<Traced> t;
  std::vector<Ref> operands;
  {
    const std::lock_guard lock(c.mutex);
    t = find(c, *layer, inputs, options);
    operands.reserve(t->function->inputs().size());
    operands.assign(inputs.begin(), inputs.end());
    for (const Ref& x : inputs)
      if (x->mask) operands.push_back(x->mask);
    if (t->counter >= 0) {
      Calls& calls = *static_cast<Calls*>(layer->eager.get());
      MP_ASSERT(size_t(t->counter) == operands.size());
      operands.push_back(from_host(&calls.counter, {DType::kInt32, {}}));
      ++calls.counter;
    }
  }
  for (const Traced::Limit& limit : t->limits)
    expect_range(*operands[limit.input], 0, limit.count, [&](int64_t value) {
      return Error(Code::kValue,
                   format("layer \"{}\": index {} does not lie in [0, {})", limit.layer, value, limit.count));
    });
  std::vector<Ref> outputs = call(t->function, operands, true);
  for (size_t i = 0; i < t->results; ++i) {
    if (t->masks[i] >= 0) outputs[i]->mask = outputs[size_t(t->masks[i])];
    if (t->logits[i] >= 0) {
      outputs[i]->logits = outputs[size_t(t->logits[i])];
      outputs[i]->softmax = t->softmax[i];
    }
  }
  outputs.resize(t->results);
  return outputs;
}

std::shared_ptr<Function> kept_function(Context& c, const graph::Key& key, const std::shared_ptr<const void>& keep,
                                        const std::function<void(Builder&)>& write) {
  if (Context::Kept* known = c.find(key)) return known->function;
  graph::Graph g;
  Builder b(g);
  write(b);
  const size_t count = g.outputs.size();
  return c.keep(key, {std::make_shared<Function>(std::move(g), count), keep, {}, 0}).function;
}

Value Seen::prediction(Builder& b, Value in) const {
  const Value p = by == By::kSoftmax ? ops::softmax(b, in) : by == By::kSigmoid ? ops::sigmoid(b, in) : in;
  return nn::wide(b, p);
}

Seen seen(const Ref& p) {
  Seen s{p, Seen::By::kItself, p->mask, p->type};
  if (p->logits) s.input = p->logits, s.by = p->softmax ? Seen::By::kSoftmax : Seen::By::kSigmoid;
  return s;
}

}  // namespace eager

EagerTensor Layer::operator()(const EagerTensor& x, CallOptions options) const {
  return operator()(EagerTensors{x}, options);
}
EagerTensor Layer::operator()(const EagerTensors& xs, CallOptions options) const {
  EagerTensors all = call_all(xs, options);
  if (all.size() != 1)
    throw Error(Code::kUsage, format("{} gives {} tensors, where one is wanted", impl_->who(), all.size()))
        .hint("call it with call_all, which returns all of them");
  return std::move(all[0]);
}
EagerTensors Layer::call_all(const EagerTensors& xs, CallOptions options) const {
  return eager::outside(eager::call_layer(impl_, eager::need(xs, "a layer's call"), options));
}

namespace {
enum class Which { kAll, kTrainable, kRest };
void collect(const nn::LayerImpl& layer, Which which, Variables& all) {
  const auto add = [&](const nn::Weight& w, bool trainable) {
    if (which != Which::kAll && trainable != (which == Which::kTrainable)) return;
    if (std::ranges::none_of(all, [&](const Variable& v) { return v.state() == w; })) all.emplace_back(w);
  };
  if (const auto* net = dynamic_cast<const nn::Network*>(&layer)) {
    for (const nn::OwnedWeight& o : nn::owned_weights(*net)) add(o.weight, o.weight->trainable && o.layer->trainable);
    return;
  }
  for (const nn::Weight& w : layer.weights()) add(w, w->trainable && layer.trainable);
}
Variables collected(const Layer& layer, Which which) {
  Variables all;
  collect(*layer.impl(), which, all);
  return all;
}
}  // namespace

Variables Layer::variables() const { return collected(*this, Which::kAll); }
Variables Layer::trainable_variables() const { return collected(*this, Which::kTrainable); }
Variables Layer::non_trainable_variables() const { return collected(*this, Which::kRest); }

EagerTensor ActivationFunction::operator()(const EagerTensor& x) const {
  const eager::Ref& r = eager::need(x, "an activation");
  eager::Context& c = eager::Context::get();
  std::shared_ptr<eager::Function> f;
  {
    const std::lock_guard lock(c.mutex);
    graph::Key key;
    key.add(std::string_view("activation"));
    key.add(uint64_t(kind_));
    key.add(r->type);
    f = eager::kept_function(c, key, nullptr, [&](graph::Builder& b) {
      b.graph().outputs.push_back({"out0", nn::activate(b, *this, b.input("x0", r->type))});
    });
  }
  const eager::Ref one[] = {r};
  std::vector<eager::Ref> made = eager::call(f, one, true);
  if (kind_ == Kind::kSoftmax || kind_ == Kind::kSigmoid) {
    made[0]->logits = r;
    made[0]->softmax = kind_ == Kind::kSoftmax;
  }
  return eager::outside(std::move(made[0]));
}

}  // namespace millpond
