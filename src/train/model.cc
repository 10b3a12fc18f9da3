#include "train/model.h"

#include <algorithm>

#include "base/format.h"
#include "base/process.h"
#include "nn/model_json.h"
#include "train/memory.h"
#include "train/places.h"

namespace millpond {
namespace train {

using graph::TensorType;

ModelImpl::ModelImpl(std::shared_ptr<nn::Network> net)
    : name(net->name),
      network(std::move(net)),
      counter(format("slots/{}.counter", name), TensorType{DType::kInt32, {}}) {}

ModelImpl::ModelImpl(std::vector<Layer> layers, std::string n)
    : name(n.empty() ? nn::automatic_name("Sequential") : std::move(n)),
      pending(std::move(layers)),
      counter(format("slots/{}.counter", name), TensorType{DType::kInt32, {}}) {}

const nn::Network& ModelImpl::built() const {
  if (!network)
    throw Error(Code::kUsage, pending.empty()
                                  ? format("the model \"{}\" has no layers", name)
                                  : format("the model \"{}\" does not know yet what a sample looks like", name))
        .hint("put Input({...}) first, call build({...}), or fit it");
  return *network;
}

void ModelImpl::build_from(const Shape& sample, DType dtype) {
  const std::lock_guard lock(making);
  if (network || pending.empty()) return;
  std::vector<Layer> all{Layer(Input(sample, dtype))};
  all.insert(all.end(), pending.begin(), pending.end());
  network = nn::make_sequential(all, name);
  resolve_compile();
}

std::shared_ptr<nn::Network> ModelImpl::network_now() {
  const std::lock_guard lock(making);
  return network;
}

std::vector<nn::Weight> ModelImpl::placed_weights() {
  const std::lock_guard lock(making);
  std::vector<nn::Weight> all = weights();
  nn::materialize(all);
  return all;
}

namespace {

// What compile was given for each output: as it stands, or, where it names outputs, in their order. Where each output
// must be named, as in Keras, one that is left out is an error; otherwise it gets a T of its own.
template <class T>
std::vector<T> in_order(const std::vector<std::string>& outputs, const std::vector<std::string>& named,
                        const std::vector<T>& given, const char* what, bool all) {
  if (named.empty()) return given;
  std::vector<T> result(outputs.size());
  std::vector<bool> filled(outputs.size());
  for (size_t i = 0; i < named.size(); ++i) {
    const size_t at = size_t(std::ranges::find(outputs, named[i]) - outputs.begin());
    if (at == outputs.size() || filled[at])
      throw Error(Code::kUsage,
                  at == outputs.size()
                      ? format("compile: {} names the output \"{}\", which the model does not have", what, named[i])
                      : format("compile: {} names the output \"{}\" twice", what, named[i]))
          .hint(format("its outputs are {}", fmt::join(outputs, ", ")));
    result[at] = given[i];
    filled[at] = true;
  }
  for (size_t i = 0; i < outputs.size() && all; ++i)
    if (!filled[i])
      throw Error(Code::kUsage, format("compile: {} leaves out the output \"{}\"", what, outputs[i]))
          .hint(std::is_same_v<T, Loss> ? "an output without a loss has Loss()" : "name each output");
  return result;
}

}  // namespace

void ModelImpl::resolve_compile() {
  if (!options || !network) return;
  const size_t outputs = network->outputs.size();
  std::vector<std::string> names;
  for (const SymbolicTensor& t : network->outputs) names.push_back(t.node()->layer->name);
  Compiled c{options->optimizer, in_order<Loss>(names, options->loss.names, options->loss, "loss", true),
             in_order<std::vector<Metric>>(names, options->metrics.names, options->metrics.by_output, "metrics", false),
             in_order<double>(names, options->loss_weights.names, options->loss_weights, "loss_weights", true)};
  if (c.losses.size() == 1 && outputs > 1) c.losses.resize(outputs, c.losses[0]);
  const auto expect = [&](size_t got, const char* what) {
    if (got != outputs)
      throw Error(Code::kUsage,
                  format("compile: {} {} for a model of {} output{}", got, what, outputs, outputs == 1 ? "" : "s"))
          .hint("give one for each output");
  };
  if (c.losses.empty()) c.losses.resize(outputs);
  expect(c.losses.size(), "losses");
  if (c.metrics.empty()) c.metrics.resize(outputs);
  expect(c.metrics.size(), "lists of metrics");
  if (c.loss_weights.empty()) c.loss_weights.resize(outputs, 1);
  expect(c.loss_weights.size(), "loss_weights");
  c.memory_target = options->memory_target;
  compiled = std::move(c);
}

const Compiled& ModelImpl::needs_compile(const char* what) const {
  if (!compiled)
    throw Error(Code::kUsage, format("{}: the model \"{}\" has not been compiled", what, name))
        .hint("call compile first");
  return *compiled;
}

void ModelImpl::place_state(Kind kind) {
  nn::materialize(weights());
  if (kind != Kind::kTrain) return;
  runtime::Variable* const beside[] = {&counter};
  compiled->optimizer.impl()->place(beside);
}

int threads_or_all(int threads) {
  constexpr int kMost = 1024;  // more than the processors of any one machine that this is for; each costs a stack
  if (threads < 0 || threads > kMost)
    throw Error(Code::kUsage, format("threads is {}, but must be 0 (all) to {}", threads, kMost));
  return threads == 0 ? usable_threads() : threads;
}

namespace {

// A layer of a Sequential that begins with Input is called at once, so that shapes are checked where they are written.
std::shared_ptr<ModelImpl> make_sequential(std::vector<Layer> layers, std::string name) {
  auto impl = std::make_shared<ModelImpl>(std::move(layers), std::move(name));
  if (!impl->pending.empty() && impl->pending[0].type() == "InputLayer" && impl->pending.size() > 1)
    impl->network = nn::make_sequential(impl->pending, impl->name);
  return impl;
}

}  // namespace
}  // namespace train

Arrays::operator Tensor() const {
  if (size() != 1) throw Error(Code::kUsage, format("one array is wanted, but there are {}", size()));
  return front();
}

Model::Model(std::vector<SymbolicTensor> inputs, std::vector<SymbolicTensor> outputs, std::string name)
    : impl_(std::make_shared<train::ModelImpl>(
          nn::make_network(std::move(inputs), std::move(outputs), std::move(name)))) {}

SymbolicTensor Model::operator()(const SymbolicTensor& x) const { return Layer(*this)(x); }

namespace {
// Weights are placed together, under the model's own rules, before a layer would do it by itself.
Layer called(train::ModelImpl& m, const EagerTensors& xs, const CallOptions& options) {
  if (!m.network_now() && xs.size() == 1 && !xs[0].is_none() && xs[0].rank() > 0)
    m.build_from(xs[0].shape().slice(1, xs[0].rank()), xs[0].dtype());
  const bool changes = options.training.value_or(false);
  const train::Use use(m, "a call on values", changes ? train::Use::How::kChange : train::Use::How::kRead);
  if (!m.called.exchange(true)) (void)m.placed_weights();
  m.built();
  return Layer(std::static_pointer_cast<nn::LayerImpl>(m.network));
}
}  // namespace

EagerTensor Model::operator()(const EagerTensor& x, CallOptions options) const {
  return called(*impl_, {x}, options)(x, options);
}
EagerTensor Model::operator()(const EagerTensors& xs, CallOptions options) const {
  return called(*impl_, xs, options)(xs, options);
}
EagerTensors Model::call_all(const EagerTensors& xs, CallOptions options) const {
  return called(*impl_, xs, options).call_all(xs, options);
}
Variables Model::variables() const { return Layer(*this).variables(); }
Variables Model::trainable_variables() const { return Layer(*this).trainable_variables(); }
Variables Model::non_trainable_variables() const { return Layer(*this).non_trainable_variables(); }

Model::operator Layer() const {
  impl_->built();
  return Layer(std::static_pointer_cast<nn::LayerImpl>(impl_->network));
}

const std::string& Model::name() const { return impl_->name; }

std::vector<Layer> Model::layers() const {
  if (!impl_->network) return impl_->pending;
  std::vector<Layer> all;
  for (const auto& l : impl_->network->layers)
    if (!impl_->network->sequential || l->type != "InputLayer")
      all.emplace_back(l);  // Keras's Sequential does not count its input
  return all;
}

Layer Model::get_layer(std::string_view name) const {
  std::string known;
  for (const Layer& l : layers()) {
    if (l.name() == name) return l;
    known += (known.empty() ? "" : ", ") + l.name();
  }
  throw Error(Code::kUsage, format("the model \"{}\" has no layer \"{}\"", impl_->name, name))
      .hint("there are " + known);
}

Layer Model::get_layer(int index) const {
  const auto all = layers();
  const int i = index < 0 ? index + int(all.size()) : index;
  if (i < 0 || i >= int(all.size()))
    throw Error(Code::kUsage, format("the model \"{}\" has no layer {}: there are {}", impl_->name, index, all.size()));
  return all[size_t(i)];
}

std::vector<SymbolicTensor> Model::inputs() const { return impl_->built().inputs; }
std::vector<SymbolicTensor> Model::outputs() const { return impl_->built().outputs; }
std::vector<std::string> Model::output_names() const {
  std::vector<std::string> names;
  for (const SymbolicTensor& t : impl_->built().outputs) names.push_back(t.node()->layer->name);
  return names;
}

int64_t Model::count_params() const {
  int64_t n = 0;
  for (const nn::Weight& w : impl_->weights()) n += w->variable.type().shape.size();
  return n;
}

void Model::compile(CompileOptions options) {
  if (options.memory_target < Bytes{0})
    throw Error(Code::kUsage, format("compile: memory_target is {}", options.memory_target)).hint("0 is none");
  if (options.loss.empty()) throw Error(Code::kUsage, "compile: no loss is given").hint("for example .loss = \"mse\"");
  const train::Use use(*impl_, "compile", train::Use::How::kRemake);
  impl_->uses.clear();
  impl_->compiled.reset();
  impl_->options = std::move(options);
  impl_->resolve_compile();
}
void Model::compile(Optimizer optimizer, LossList loss, MetricList metrics) {
  compile({.optimizer = std::move(optimizer), .loss = std::move(loss), .metrics = std::move(metrics)});
}
bool Model::compiled() const { return impl_->options.has_value(); }

Optimizer Model::optimizer() const {
  if (!impl_->options)
    throw Error(Code::kUsage, format("the model \"{}\" has not been compiled", impl_->name)).hint("call compile first");
  return impl_->options->optimizer;
}

void Model::stop_training(bool stop) { impl_->stop = stop; }
bool Model::stopping() const { return impl_->stop; }

std::vector<Tensor> Model::get_weights() const {
  const train::Use use(*impl_, "get_weights", train::Use::How::kRead);
  const auto weights = impl_->placed_weights();
  std::vector<Tensor> copies;
  for (const nn::Weight& w : weights) copies.push_back(w->variable.copy("data/weights"));
  return copies;
}
void Model::set_weights(const std::vector<Tensor>& values) {
  const train::Use use(*impl_, "set_weights", train::Use::How::kChange);
  nn::set_weights(impl_->weights(), values, format("the model \"{}\"", impl_->name));
}

std::vector<Tensor> Model::weight_views() {
  const auto weights = impl_->placed_weights();
  std::vector<Tensor> views;
  for (const nn::Weight& w : weights) views.push_back(w->variable.view());
  return views;
}

MemoryReport Model::memory() const {
  const train::Use use(*impl_, "memory", train::Use::How::kRead);
  MemoryReport report = millpond::memory();
  report.accounts.clear();
  report.taken = {};
  for (const train::Place& p : train::places_of(*impl_)) {
    report.taken += p.size;
    const auto same = std::ranges::find(report.accounts, p.account, &std::pair<std::string, Bytes>::first);
    if (same != report.accounts.end())
      same->second += p.size;
    else
      report.accounts.emplace_back(p.account, p.size);
  }
  Bytes programs;
  for (const train::Programs* w : impl_->uses.workspaces())
    for (const train::Ready* r : w->all()) programs += r->own;
  if (programs.value > 0) report.accounts.emplace_back("programs", programs);
  return report;
}

std::vector<std::string> Model::weight_names() const {
  std::vector<std::string> names;
  for (const nn::OwnedWeight& w : nn::owned_weights(impl_->built()))
    names.push_back(w.layer->name + "/" + w.weight->path());
  return names;
}

std::string Model::to_json(int indent) const { return nn::to_text(nn::network_to_json(impl_->built()), indent); }

Sequential::Sequential(std::initializer_list<Layer> layers, std::string name)
    : Model(train::make_sequential(layers, std::move(name))) {}
Sequential::Sequential(const std::vector<Layer>& layers, std::string name)
    : Model(train::make_sequential(layers, std::move(name))) {}

void Sequential::add(Layer layer) {
  auto& m = *impl_;
  const train::Use use(m, "add", train::Use::How::kRemake);
  m.pending.push_back(std::move(layer));
  m.uses.clear();
  m.compiled.reset();
  m.network.reset();
  if (m.pending[0].type() == "InputLayer" && m.pending.size() > 1) m.network = nn::make_sequential(m.pending, m.name);
  m.resolve_compile();
}

void Sequential::build(Shape input_shape) { impl_->build_from(input_shape, DType::kFloat32); }

Model model_from_json(std::string_view json) {
  return Model(std::make_shared<train::ModelImpl>(nn::network_from_json(json)));
}

}  // namespace millpond
