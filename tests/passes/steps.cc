#include "passes/steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "base/random.h"
#include "ops/all.h"
#include "support/rules.h"

namespace millpond::test {

using graph::Builder;
using graph::Phase;
using graph::Value;

namespace {

class Maker {
 public:
  explicit Maker(Step& step) : step_(step), b(step.graph) {}

  Value input(const std::string& name, DType dtype, Shape shape, int64_t classes = 0) {
    Tensor t(dtype, shape);
    for (int64_t i = 0; i < t.size(); ++i) {
      if (dtype == DType::kInt32)
        t.values<int32_t>()[i] = int32_t(random_.below(uint64_t(classes)));
      else
        t.values<float>()[i] = classes ? float(random_.below(2)) : float(random_.normal());
    }
    step_.batch.emplace_back(name, t);
    return b.input(name, {dtype, shape});
  }

  Value variable(const std::string& account, DType dtype, Shape shape, double scale) {
    step_.variables.push_back(std::make_unique<runtime::Variable>(account, graph::TensorType{dtype, shape}));
    runtime::Variable* v = step_.variables.back().get();
    runtime::Variable* one[] = {v};
    runtime::place(one, "test");
    if (scale != 0)
      for (Tensor all = v->view(); float& f : all.values<float>()) f = float(random_.normal() * scale);
    return b.variable(account, v->type(), v);
  }

  Value weight(const std::string& name, Shape shape, double scale) {
    const Value v = variable("weights/" + name, DType::kFloat32, shape, scale);
    weights_.push_back(v);
    return v;
  }

  void train(Value loss, const std::string& optimizer) {
    step_.graph.outputs.push_back({"loss", loss});
    const std::vector<Value> grads = passes::gradients(b, loss, weights_);
    const Builder::Scope scope(b, "", Phase::kUpdate);
    const ops::Rule rule = optimizer == "momentum" ? momentum_rule(0.9)
                           : optimizer == "adam"   ? adam_rule()
                           : optimizer == "adamw"  ? adam_rule({.weight_decay = 0.004})
                           : optimizer == "odd"    ? odd_rule()
                                                   : sgd_rule();
    const Value rate = variable("state/learning_rate", DType::kFloat32, {}, 0);
    step_.variables.back()->put(0.01f);
    const Value iterations = variable("state/iterations", DType::kInt64, {}, 0);
    std::vector<Value> own;
    for (const ops::Rule::Kept& k : rule.own) {
      own.push_back(variable("state/" + k.name, DType::kFloat32, {}, 0));
      step_.variables.back()->put(float(k.initial));
    }
    const std::vector<Value> sizes = ops::step_size(b, rule, rate, iterations, own);
    for (size_t k = 0; k < own.size(); ++k) step_.graph.updates.push_back({own[k], sizes[1 + k]});
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (!grads[i]) continue;  // the loss does not depend on it
      std::vector<Value> slots;
      for (int k = 0; k < rule.slot_count(); ++k)
        slots.push_back(
            variable("slots/" + std::to_string(i) + "." + std::to_string(k), DType::kFloat32, weights_[i].shape(), 0));
      const std::vector<Value> after = ops::optimizer_step(b, rule, weights_[i], slots, grads[i], sizes[0]);
      step_.graph.updates.push_back({weights_[i], after[0]});
      for (size_t k = 0; k < slots.size(); ++k) step_.graph.updates.push_back({slots[k], after[1 + k]});
    }
    step_.graph.updates.push_back({iterations, ops::add(b, iterations, b.scalar(DType::kInt64, 1))});
  }

  Step& step_;
  Random random_{7};
  std::vector<Value> weights_;
  Builder b;
};

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
Value gelu(Builder& b, Value x) {
  const Value cube = ops::multiply(b, ops::square(b, x), x);
  const Value t = ops::tanh(b, ops::multiply(b, ops::add(b, x, ops::multiply(b, cube, 0.044715)), 0.7978845608));
  return ops::multiply(b, ops::multiply(b, x, 0.5), ops::add(b, t, 1.0));
}

}  // namespace

Step mlp_step(const StepOptions& o) {
  Step step;
  Maker m(step);
  Builder& b = m.b;
  Value h = m.input("x0", DType::kFloat32, {o.rows, o.widths[0]});
  const Value y = m.input("y0", DType::kFloat32, {o.rows, o.widths.back()}, 2);
  Value counter;
  if (o.dropout) counter = m.variable("state/counter", DType::kInt32, {}, 0);
  for (size_t i = 1; i < o.widths.size(); ++i) {
    const std::string layer = "dense_" + std::to_string(i);
    const Builder::Scope scope(b, layer, Phase::kForward);
    const int64_t in = o.widths[i - 1], out = o.widths[i];
    h = ops::add(b, ops::matmul(b, h, m.weight(layer + "/kernel", {in, out}, 1 / std::sqrt(double(in)))),
                 m.weight(layer + "/bias", {out}, 0.1));
    if (i + 1 == o.widths.size()) break;
    h = o.gelu ? gelu(b, h) : ops::relu(b, h);
    if (o.dropout) h = ops::dropout(b, h, counter, 0.5, i);
  }
  Value loss, hits;
  {
    const Builder::Scope scope(b, "loss", Phase::kLoss);
    loss = ops::mean(b, ops::sigmoid_cross_entropy(b, h, y));
    const Value guess = ops::greater(b, ops::sigmoid(b, h), b.scalar(DType::kFloat32, 0.5));
    hits = ops::sum(b, ops::cast(b, ops::equal(b, ops::cast(b, guess, DType::kFloat32), y), DType::kFloat32));
  }
  step.graph.outputs.push_back({"hits", hits});
  m.train(loss, o.optimizer);
  if (o.dropout) step.graph.updates.push_back({counter, ops::add(b, counter, b.scalar(DType::kInt32, 1))});
  return step;
}

Step conv_step(bool deep, int64_t scale, const std::string& optimizer) {
  Step step;
  Maker m(step);
  Builder& b = m.b;
  const int64_t n = 3, classes = 4;
  Value h = m.input("x0", DType::kFloat32, {n, 11 * scale, 13 * scale, 3});
  const Value y = m.input("y0", DType::kInt32, {n}, classes);
  for (int i = 0; i <= int(deep); ++i) {
    const std::string layer = "conv_" + std::to_string(i);
    const Builder::Scope scope(b, layer, Phase::kForward);
    const int64_t in = h.shape().back(), out = (5 + 12 * i) * scale;
    const Value k = m.weight(layer + "/kernel", {3, 3, in, out}, 0.3 / double(scale));
    h = ops::add(b, ops::conv2d(b, h, k, {}), m.weight(layer + "/bias", {out}, 0.1));
    h = ops::max_pool2d(b, ops::relu(b, h), {.height = 2, .width = 2, .stride_h = 2, .stride_w = 2});
  }
  {
    const Builder::Scope scope(b, "dense", Phase::kForward);
    h = ops::reshape(b, h, {n, h.shape().size() / n});
    const int64_t in = h.shape().back();
    h = ops::add(b, ops::matmul(b, h, m.weight("dense/kernel", {in, classes}, 1 / std::sqrt(double(in)))),
                 m.weight("dense/bias", {classes}, 0.1));
  }
  Value loss;
  {
    const Builder::Scope scope(b, "loss", Phase::kLoss);
    loss = ops::mean(b, ops::softmax_cross_entropy(b, h, y));
  }
  m.train(loss, optimizer);
  return step;
}

Step attention_step() {
  Step step;
  Maker m(step);
  Builder& b = m.b;
  const int64_t tokens = 6, heads = 2, width = 3, wide = heads * width, classes = 4;
  const Value x = m.input("x0", DType::kFloat32, {tokens, wide});
  const Value y = m.input("y0", DType::kInt32, {tokens}, classes);
  Value h;
  {
    const Builder::Scope scope(b, "attention", Phase::kForward);
    std::vector<Value> by_head;
    for (const char* name : {"query", "key", "value"}) {
      const Value projected = ops::matmul(b, x, m.weight(name, {wide, wide}, 0.4));
      by_head.push_back(ops::transpose(b, ops::reshape(b, projected, {1, tokens, heads, width}), {0, 2, 1, 3}));
    }
    const Value attended = ops::attention(b, by_head[0], by_head[1], by_head[2], true, 0.5)[0];
    h = ops::matmul(b, ops::reshape(b, ops::transpose(b, attended, {0, 2, 1, 3}), {tokens, wide}),
                    m.weight("projection", {wide, classes}, 0.4));
  }
  Value loss;
  {
    const Builder::Scope scope(b, "loss", Phase::kLoss);
    loss = ops::mean(b, ops::softmax_cross_entropy(b, h, y));
  }
  m.train(loss, "adam");
  return step;
}

namespace {

struct LstmWeights {
  Value kernel, recurrent, bias;
};

// Keras's gates: input, forget, cell, output. Returns {h, c}.
std::pair<Value, Value> lstm_cell(Builder& b, Value x, Value h, Value c, const LstmWeights& w) {
  const int64_t rows = h.shape()[0], units = h.shape()[1];
  const Value z = ops::add(b, ops::add(b, ops::matmul(b, x, w.kernel), ops::matmul(b, h, w.recurrent)), w.bias);
  const auto part = [&](int64_t k) { return ops::slice(b, z, {0, k * units}, {rows, units}); };
  const Value next = ops::add(b, ops::multiply(b, ops::sigmoid(b, part(1)), c),
                              ops::multiply(b, ops::sigmoid(b, part(0)), ops::tanh(b, part(2))));
  return {ops::multiply(b, ops::sigmoid(b, part(3)), ops::tanh(b, next)), next};
}

LstmWeights lstm_weights(Maker& m, const RecurrentOptions& o) {
  return {m.weight("lstm/kernel", {o.inputs, 4 * o.units}, 1 / std::sqrt(double(o.inputs))),
          m.weight("lstm/recurrent_kernel", {o.units, 4 * o.units}, 1 / std::sqrt(double(o.units))),
          m.weight("lstm/bias", {4 * o.units}, 0.1)};
}

// Of the mean over all steps, and of the last one.
Value recurrent_loss(Builder& b, Value mean, Value last, Value y) {
  const Builder::Scope scope(b, "loss", Phase::kLoss);
  return ops::mean(b, ops::square(b, ops::subtract(b, ops::add(b, mean, last), y)));
}

}  // namespace

Step unrolled_step(const RecurrentOptions& o) {
  Step step;
  Maker m(step);
  Builder& b = m.b;
  const Value xs = m.input("x0", DType::kFloat32, {o.length, o.rows, o.inputs});
  const Value y = m.input("y0", DType::kFloat32, {o.rows, o.units});
  const LstmWeights w = lstm_weights(m, o);
  Value mean, h;
  {
    const Builder::Scope scope(b, "lstm", Phase::kForward);
    h = ops::broadcast_to(b, b.scalar(DType::kFloat32, 0), {o.rows, o.units});
    Value c = h;
    for (int64_t t = 0; t < o.length; ++t) {
      const Value x = ops::reshape(b, ops::slice(b, xs, {t, 0, 0}, {1, o.rows, o.inputs}), {o.rows, o.inputs});
      std::tie(h, c) = lstm_cell(b, x, h, c, w);
      const Value share = ops::multiply(b, h, 1 / double(o.length));
      mean = mean ? ops::add(b, mean, share) : share;
    }
  }
  m.train(recurrent_loss(b, mean, h, y), o.optimizer);
  return step;
}

Step scan_step(const RecurrentOptions& o) {
  Step step;
  Maker m(step);
  Builder& b = m.b;
  const Value xs = m.input("x0", DType::kFloat32, {o.length, o.rows, o.inputs});
  const Value y = m.input("y0", DType::kFloat32, {o.rows, o.units});
  const LstmWeights w = lstm_weights(m, o);
  Value mean, h;
  {
    const Builder::Scope scope(b, "lstm", Phase::kForward);
    const Value zero = ops::broadcast_to(b, b.scalar(DType::kFloat32, 0), {o.rows, o.units});
    const std::vector<Value> out =
        ops::scan(b, std::vector{zero, zero}, std::vector{xs}, std::vector{w.kernel, w.recurrent, w.bias},
                  [](Builder& body, std::span<const Value> in) -> std::vector<Value> {
                    const auto [next, c] = lstm_cell(body, in[2], in[0], in[1], {in[3], in[4], in[5]});
                    return {next, c, next};
                  });
    h = out[0];
    mean = ops::mean(b, out[2], {0});
  }
  m.train(recurrent_loss(b, mean, h, y), o.optimizer);
  return step;
}

Step random_step(uint64_t seed) {
  Step step;
  Maker m(step);
  Builder& b = m.b;
  Random draw(seed);
  const auto below = [&](int64_t n) { return int64_t(draw.below(uint64_t(n))); };
  const int64_t rows = 3 + below(30), width = 8 * (1 + below(6));
  std::vector<Value> pool{m.input("x0", DType::kFloat32, {rows, width})};  // of this shape, all of them
  const Value y = m.input("y0", DType::kFloat32, {rows, width});
  const Value counter = m.variable("state/counter", DType::kInt32, {}, 0);
  std::vector<std::pair<Value, Value>> running;
  const int count = 4 + int(below(24));
  for (int i = 0; i < count; ++i) {
    const std::string layer = "layer_" + std::to_string(i);
    const Builder::Scope scope(b, layer, Phase::kForward);
    const auto any = [&] { return pool[size_t(below(3) ? int64_t(pool.size()) - 1 : below(int64_t(pool.size())))]; };
    const auto weight = [&](const char* name, Shape shape, double scale) {
      return m.weight(layer + "/" + name, std::move(shape), scale);
    };
    const Value x = any();
    Value z = x;
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        z = ops::add(b, ops::matmul(b, x, weight("kernel", {width, width}, 1 / std::sqrt(double(width)))),
                     weight("bias", {width}, 0.1));
        if (below(2)) z = ops::relu(b, z);
        break;
      case 3: {
        const int64_t wide = width * (2 + below(3));
        z = gelu(b, ops::matmul(b, x, weight("wide", {width, wide}, 1 / std::sqrt(double(width)))));
        z = ops::matmul(b, z, weight("narrow", {wide, width}, 1 / std::sqrt(double(wide))));
        break;
      }
      case 4: {
        const std::vector<Value> n =
            ops::batch_norm(b, x, weight("gamma", {width}, 1), weight("beta", {width}, 0.1), 1e-3);
        z = n[0];
        const Value mean = m.variable("state/" + layer, DType::kFloat32, {width}, 0);
        running.emplace_back(mean, ops::add(b, ops::multiply(b, mean, 0.9), ops::multiply(b, n[1], 0.1)));
        break;
      }
      case 5:
        z = ops::dropout(b, x, counter, 0.3, uint64_t(i + 1));
        break;
      case 6:
        z = ops::add(b, x, any());
        break;
      case 7:
        z = ops::tanh(b, ops::multiply(b, x, any()));
        break;
      case 8:
        z = ops::reshape(b, ops::tanh(b, ops::transpose(b, ops::reshape(b, x, {rows, 8, width / 8}), {0, 2, 1})),
                         {rows, width});
        break;
      case 9: {
        const Value joined = ops::concatenate(b, std::vector{x, any()}, 1);
        z = ops::slice(b, joined, {0, width / 2}, {rows, width});
        break;
      }
    }
    pool.push_back(z);
  }
  Value loss;
  {
    const Builder::Scope scope(b, "loss", Phase::kLoss);
    loss = ops::mean(b, ops::square(b, ops::subtract(b, ops::add(b, pool.back(), pool[pool.size() / 2]), y)));
  }
  m.train(loss, below(2) ? "adam" : "momentum");
  step.graph.updates.push_back({counter, ops::add(b, counter, b.scalar(DType::kInt32, 1))});
  for (const auto& [variable, value] : running) step.graph.updates.push_back({variable, value});
  return step;
}

std::vector<Tensor> run_steps(const Step& step, const runtime::Options& options, int steps) {
  // The step's variables are its initial values: each run works on its own.
  std::vector<std::unique_ptr<runtime::Variable>> own;
  graph::Graph g = step.graph.clone();
  for (const auto& v : step.variables) {
    own.push_back(std::make_unique<runtime::Variable>(v->account(), v->type()));
    runtime::Variable* one[] = {own.back().get()};
    runtime::place(one, "test", options.chosen_backend());
    own.back()->write(v->view());
    for (const auto& n : g.nodes())
      if (n->variable == v.get()) n->variable = own.back().get();
  }
  runtime::Program program("test", std::move(g), options);
  const backend::Memory arena = program.backend().take(program.arena_bytes() + 64_B, "test");
  program.bind(arena.address());
  Team team(options.threads);
  for (int i = 0; i < steps; ++i) {
    program.open();
    for (const auto& [name, t] : step.batch) std::memcpy(program.input(name), t.data(), size_t(t.bytes().value));
    program.run(team);
  }
  program.wait();
  std::vector<Tensor> results;
  for (const graph::Output& o : program.graph().outputs) {
    const graph::TensorType& t = program.output_type(o.name);
    Tensor copy(t.dtype, t.shape);
    std::memcpy(copy.data(), program.output(o.name), size_t(t.bytes().value));
    results.push_back(copy);
  }
  for (const auto& v : own) results.push_back(v->copy("test"));
  return results;
}

double worst_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return 1e30;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].shape() != b[i].shape()) return 1e30;
    double top = 1e-30, apart = 0;
    for (int64_t k = 0; k < a[i].size(); ++k) {
      top = std::max({top, std::abs(a[i].at(k)), std::abs(b[i].at(k))});
      apart = std::max(apart, std::abs(a[i].at(k) - b[i].at(k)));
    }
    if (std::isnan(apart)) return 1e30;
    worst = std::max(worst, apart / top);
  }
  return worst;
}

}  // namespace millpond::test
