#include "train/optimizer.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "ops/binary.h"
#include "ops/optimizer_step.h"
#include "ops/step_size.h"

namespace millpond {
namespace train {

using graph::Builder;
using graph::TensorType;
using graph::Value;

OptimizerImpl::OptimizerImpl(std::string n, ops::Rule r, double lr)
    : name(std::move(n)),
      rule(r),
      rate(lr),
      learning_rate(format("slots/{}.learning_rate", name), TensorType{DType::kFloat32, {}}),
      iterations(format("slots/{}.iterations", name), TensorType{DType::kInt64, {}}) {}

namespace {
const char* slot_name(const ops::Rule& rule, int i) {
  if (rule.kind == ops::Rule::Kind::kMomentum) return "momentum";
  return i == 0 ? "m" : "v";
}
}  // namespace

void OptimizerImpl::build(std::span<const nn::OwnedWeight> trainable) {
  if (!slots.empty()) {
    const bool same = slots.size() == trainable.size() &&
                      std::equal(slots.begin(), slots.end(), trainable.begin(), [](const Slots& s, const nn::OwnedWeight& w) { return s.weight == w.weight; });
    if (!same)
      throw Error(Code::kUsage, format("the optimizer \"{}\" already trains other weights", name)).hint("give each model an optimizer of its own, and compile again after changing what is trainable");
    return;
  }
  for (const nn::OwnedWeight& w : trainable) {
    Slots s{w.weight, {}};
    for (int i = 0; i < rule.slots(); ++i)
      s.variables.push_back(std::make_unique<runtime::Variable>(format("slots/{}.{}/{}/{}", name, slot_name(rule, i), w.layer->name, w.weight->path()), w.weight->variable.type()));
    slots.push_back(std::move(s));
  }
}

std::vector<runtime::Variable*> OptimizerImpl::variables() {
  std::vector<runtime::Variable*> all{&learning_rate, &iterations};
  for (const Slots& s : slots)
    for (const auto& v : s.variables) all.push_back(v.get());
  return all;
}

void OptimizerImpl::place(runtime::Variable& beside) {
  const bool first = !learning_rate.placed();
  std::vector<runtime::Variable*> all = variables();
  all.push_back(&beside);
  runtime::place(all, "slots");
  if (first) learning_rate.value().values<float>()[0] = float(rate);
}

void OptimizerImpl::update(Builder& b, std::span<const nn::OwnedWeight> trainable, std::span<const Value> weights, std::span<const Value> gradients) {
  const auto read = [&](runtime::Variable& v) { return b.variable(v.account(), v.type(), &v); };
  Value lr, count, size;
  {
    const Builder::Scope scope(b, name, graph::Phase::kUpdate);
    lr = read(learning_rate), count = read(iterations);
    size = ops::step_size(b, lr, count, rule);
  }
  for (size_t i = 0; i < trainable.size(); ++i) {
    if (!gradients[i]) continue;
    const Builder::Scope scope(b, trainable[i].layer->name, graph::Phase::kUpdate);
    std::vector<Value> before;
    for (const auto& v : slots[i].variables) before.push_back(read(*v));
    const auto after = ops::optimizer_step(b, rule, weights[i], before, gradients[i], size);
    b.graph().updates.push_back({weights[i], after[0]});
    for (size_t s = 0; s < before.size(); ++s) b.graph().updates.push_back({before[s], after[s + 1]});
  }
  const Builder::Scope scope(b, name, graph::Phase::kUpdate);
  b.graph().updates.push_back({count, ops::add(b, count, 1)});
}

namespace {

float in_range(const std::string& optimizer, const char* what, double v, double low, double high) {
  if (!(v >= low && v <= high)) throw Error(Code::kUsage, format("{}: {} is {}, but must lie between {} and {}", optimizer, what, v, low, high));
  return float(v);
}
constexpr double kAny = 1e30;

std::shared_ptr<OptimizerImpl> make_sgd(double lr, const SGDOptions& o) {
  ops::Rule r;
  r.kind = o.momentum != 0 ? ops::Rule::Kind::kMomentum : ops::Rule::Kind::kSgd;
  r.momentum = in_range(o.name, "momentum", o.momentum, 0, 1);
  r.nesterov = o.nesterov && o.momentum != 0;
  r.weight_decay = in_range(o.name, "weight_decay", o.weight_decay, 0, kAny);
  return std::make_shared<OptimizerImpl>(o.name, r, in_range(o.name, "learning_rate", lr, 0, kAny));
}

std::shared_ptr<OptimizerImpl> make_adam(const std::string& name, double lr, double beta_1, double beta_2, double epsilon, double weight_decay) {
  ops::Rule r;
  r.kind = ops::Rule::Kind::kAdam;
  r.beta1 = in_range(name, "beta_1", beta_1, 0, 1);
  r.beta2 = in_range(name, "beta_2", beta_2, 0, 1);
  r.epsilon = in_range(name, "epsilon", epsilon, 0, kAny);
  r.weight_decay = in_range(name, "weight_decay", weight_decay, 0, kAny);
  return std::make_shared<OptimizerImpl>(name, r, in_range(name, "learning_rate", lr, 0, kAny));
}

}  // namespace
}  // namespace train

SGD::SGD(double learning_rate, SGDOptions o) : Optimizer(train::make_sgd(learning_rate, o)) {}
Adam::Adam(double learning_rate, AdamOptions o) : Optimizer(train::make_adam(o.name, learning_rate, o.beta_1, o.beta_2, o.epsilon, o.weight_decay)) {}
AdamW::AdamW(double learning_rate, AdamWOptions o) : Optimizer(train::make_adam(o.name, learning_rate, o.beta_1, o.beta_2, o.epsilon, o.weight_decay)) {}

Optimizer::Optimizer(std::string_view name) {
  std::string small(name);
  for (char& c : small) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (small == "sgd") *this = SGD();
  else if (small == "adam") *this = Adam();
  else if (small == "adamw") *this = AdamW();
  else throw Error(Code::kUsage, format("optimizer \"{}\" is not known", name)).hint("known are sgd, adam, adamw");
}

const std::string& Optimizer::name() const { return impl_->name; }
double Optimizer::learning_rate() const { return impl_->learning_rate.placed() ? double(impl_->learning_rate.value().values<float>()[0]) : impl_->rate; }
void Optimizer::set_learning_rate(double learning_rate) {
  train::in_range(impl_->name, "learning_rate", learning_rate, 0, train::kAny);
  impl_->rate = learning_rate;
  if (impl_->learning_rate.placed()) impl_->learning_rate.value().values<float>()[0] = float(learning_rate);
}
int64_t Optimizer::iterations() const { return impl_->iterations.placed() ? impl_->iterations.value().values<int64_t>()[0] : 0; }

}  // namespace millpond
