#include "train/trace.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace millpond::train {

using graph::Builder;
using graph::TensorType;
using graph::Value;

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kTrain:
      return "train";
    case Kind::kEvaluate:
      return "evaluate";
    case Kind::kPredict:
      return "predict";
  }
  return "";
}

std::string told_samples(const nn::Network& net, const SampleShapes& samples) {
  std::string text;
  if (net.open())
    for (const Shape& s : samples.x) text += (text.empty() ? "" : " ") + to_string(s);
  return text;
}

SampleShapes samples_to_plan(const nn::Network& net, const Compiled* compiled, std::span<const Shape> given) {
  if (!given.empty() && given.size() != net.inputs.size())
    throw Error(Code::kUsage, format("{} shapes of inputs are given, but the model \"{}\" has {} input{}", given.size(),
                                     net.name, net.inputs.size(), net.inputs.size() == 1 ? "" : "s"));
  SampleShapes samples;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    const Shape want = net.inputs[i].shape();
    const std::string& input = net.inputs[i].node()->layer->name;
    const std::optional<Shape> shape = given.empty() ? want : nn::fitted(want, given[i]);
    if (!shape)
      throw Error(Code::kShape,
                  format("samples of {} are given for the input \"{}\", which wants {}", given[i], input, want));
    if (!shape->known())
      throw Error(Code::kUsage,
                  format("nobody says how large samples are: the input \"{}\" takes {}, whatever None is", input, want))
          .hint("give a shape for each input: plan({.inputs = {{100}}}), or --shape 100");
    samples.x.push_back(*shape);
  }
  if (!compiled) return samples;
  const std::vector<TensorType> outputs = nn::output_types(net, samples.x);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape one = outputs[i].shape;
    const Shape s = compiled->losses[i] ? compiled->losses[i].impl()->label_shape(one) : one;
    samples.y.push_back(s.slice(1, s.rank()));
  }
  return samples;
}

namespace {

struct Labelled {
  Value value;                               // as staged
  std::shared_ptr<const nn::LossImpl> loss;  // resolved by the shapes; null: none
};

Value weighted(Builder& b, Value v, double weight) { return weight == 1 ? v : ops::multiply(b, v, weight); }

// What lies beside the arena and the constants, in any program of the model.
Bytes kept(const nn::Network& net, const Compiled& compiled, const runtime::Variable* counter,
           const MetricCounts& counts) {
  constexpr Bytes kAlignment{64};
  Bytes sum;
  const auto add = [&](const runtime::Variable& v) { sum += round_up(v.type().bytes(), kAlignment); };
  for (const nn::OwnedWeight& w : nn::owned_weights(net)) add(w.weight->variable);
  for (const runtime::Variable* v : compiled.optimizer.impl()->variables()) add(*v);
  for (const runtime::Variable* v : counts.all()) add(*v);
  if (counter) add(*counter);
  return sum;
}

Traced trace_step(const nn::Network& net, const Compiled* compiled, Kind kind, int64_t batch,
                  const SampleShapes& samples, runtime::Variable* counter, MetricCounts& counts,
                  const passes::Options& passes) {
  MP_ASSERT(samples.x.size() == net.inputs.size());
  Traced t;
  t.samples = told_samples(net, samples);
  Builder b(t.graph);
  const bool training = kind == Kind::kTrain;
  nn::CallContext context(b, training, counter);

  std::vector<Value> xs;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    Feed feed{format("x{}", i), {net.inputs[i].dtype(), samples.x[i].with_front(batch)}};
    xs.push_back(b.input(feed.name, feed.type));
    t.feeds.push_back(std::move(feed));
  }
  const std::vector<Value> outputs = net.trace(context, xs);
  t.records = passes::run_before_gradients(t.graph, passes);
  for (const auto& limit : context.limits())
    for (Feed& f : t.feeds)
      if (f.name == limit.input && (f.limit == 0 || limit.count < f.limit))
        f.limit = limit.count, f.limit_of = limit.layer;

  if (kind == Kind::kPredict) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      t.outputs.push_back(format("out{}", i));
      t.graph.outputs.push_back({t.outputs.back(), outputs[i]});
    }
    return t;
  }

  MP_ASSERT(compiled && samples.y.size() == outputs.size());
  const bool several = outputs.size() > 1;
  const auto scalar = [&](std::string name, Value v, double weight, double per_sample) {
    t.graph.outputs.push_back({name, ops::cast(b, v, DType::kFloat32)});
    t.scalars.push_back({std::move(name), weight, per_sample});
  };
  const auto share = [&](const std::string& name, const nn::Counted& c) {
    t.graph.outputs.push_back({name, ops::cast(b, c.sum, DType::kFloat32)});
    t.graph.outputs.push_back({name + "/count", ops::cast(b, c.count, DType::kFloat32)});
    t.scalars.push_back({.name = name, .weight = c.unit, .counted = true});
  };
  const auto count = [&](const std::string& name, const std::shared_ptr<const nn::CountingMetric>& metric, Value y,
                         Value prediction) {
    std::vector<runtime::Variable*> variables = counts.of(name, *metric);
    std::vector<Value> before;
    for (runtime::Variable* v : variables) before.push_back(b.variable(v->account(), v->type(), v));
    const std::vector<Value> after = metric->update(b, before, y, prediction);
    MP_ASSERT(after.size() == before.size());
    for (size_t i = 0; i < before.size(); ++i) t.graph.updates.push_back({before[i], after[i]});
    t.scalars.push_back({.name = name, .metric = metric, .counts = std::move(variables)});
  };
  std::vector<Labelled> labels;
  Value total;
  std::vector<std::pair<std::string, Value>> parts;
  {
    const Builder::Scope scope(b, "loss", graph::Phase::kLoss);
    std::vector<Value> seen;
    for (const Value v : outputs) seen.push_back(nn::wide(b, v));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& layer = net.outputs[i].node()->layer->name;
      Labelled l;
      const Shape y_shape = samples.y[i].with_front(batch);
      nn::Labels want{seen[i].dtype(), 0};
      if (compiled->losses[i]) {
        l.loss = compiled->losses[i].impl();
        if (auto chosen = l.loss->resolve(y_shape, seen[i].shape())) l.loss = chosen;
        want = l.loss->labels(seen[i].type());
      }
      Feed feed{format("y{}", i), TensorType{want.dtype, y_shape}, true, want.classes, layer};
      l.value = b.input(feed.name, feed.type);
      t.feeds.push_back(std::move(feed));
      if (l.loss) {
        try {
          const Value one = nn::mean_loss(b, *l.loss, l.value, seen[i], context.mask_of(outputs[i]));
          parts.emplace_back(layer + "_loss", one);
          const Value part = weighted(b, one, compiled->loss_weights[i]);
          total = total ? ops::add(b, total, part) : part;
        } catch (Error& e) {
          e.add("output", layer);
          throw;
        }
      }
      labels.push_back(std::move(l));
    }
    if (!total)
      throw Error(Code::kUsage, format("the model \"{}\" has no loss for any output", net.name))
          .hint("give compile a loss");
    scalar("loss", total, double(batch), 1);
    if (parts.size() > 1)  // as in Keras: one alone is the loss
      for (auto& [name, value] : parts) scalar(name, value, double(batch), 1);
    for (size_t i = 0; i < outputs.size(); ++i)
      for (const Metric& m : compiled->metrics[i]) {
        const std::string name = several ? net.outputs[i].node()->layer->name + "_" + m.name() : m.name();
        if (const auto counting = std::dynamic_pointer_cast<const nn::CountingMetric>(m.impl())) {
          count(name, counting, labels[i].value, seen[i]);
          continue;
        }
        const Value values = dynamic_cast<const nn::MeanMetric&>(*m.impl()).values(b, labels[i].value, seen[i]);
        if (const Value mask = context.mask_of(outputs[i])) {
          share(name, nn::counted(b, values, mask, m.name()));
          continue;
        }
        const double each = double(values.shape().size()) / double(batch);  // values that a sample has
        // Where batches differ in that, a sample counts as one whatever its length, as in Keras.
        if (net.open())
          scalar(name, ops::sum(b, values), each > 0 ? 1 / each : 0, 1);
        else
          scalar(name, ops::sum(b, values), 1, each);
      }
  }
  for (size_t i = 0; i < t.scalars.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (t.scalars[i].name == t.scalars[j].name)
        throw Error(Code::kUsage, format("two metrics have the name \"{}\"", t.scalars[i].name))
            .hint("give one of them another name");
  if (!training) return t;

  std::vector<nn::OwnedWeight> trainable;
  for (nn::OwnedWeight& w : nn::owned_weights(net))
    if (w.weight->trainable && w.layer->trainable) trainable.push_back(std::move(w));
  std::vector<Value> weights;
  for (const nn::OwnedWeight& w : trainable)
    weights.push_back(b.variable(w.weight->variable.account(), w.weight->variable.type(), &w.weight->variable));
  OptimizerImpl& optimizer = *compiled->optimizer.impl();
  if (std::ranges::any_of(net.layers, [](const auto& l) { return l->policy.scales_losses(); }))
    optimizer.scale_losses();
  const std::vector<Value> gradients = passes::gradients(b, optimizer.scaled(b, total), weights);
  optimizer.build(trainable);
  optimizer.update(b, trainable, weights, gradients);

  const Builder::Scope scope(b, "state", graph::Phase::kUpdate);
  for (const auto& a : context.assignments())
    t.graph.updates.push_back(
        {b.variable(a.weight->variable.account(), a.weight->variable.type(), &a.weight->variable), a.value});
  if (context.random()) t.graph.updates.push_back({context.counter_value(), ops::add(b, context.counter_value(), 1)});
  return t;
}

}  // namespace

Traced trace(const nn::Network& net, const Compiled* compiled, Kind kind, int64_t batch, const SampleShapes& samples,
             runtime::Variable* counter, MetricCounts& counts, const passes::Options& passes) {
  Traced t = trace_step(net, compiled, kind, batch, samples, counter, counts, passes);
  if (compiled && compiled->memory_target.value > 0)
    t.memory_target = compiled->memory_target - kept(net, *compiled, counter, counts);
  return t;
}

}  // namespace millpond::train
