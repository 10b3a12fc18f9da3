#include "train/optimizer.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/concatenate.h"
#include "ops/optimizer_step.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/step_size.h"
#include "ops/unary.h"
#include "train/optimizers/kind.h"

namespace millpond {
namespace train {

using graph::Builder;
using graph::TensorType;
using graph::Value;

OptimizerImpl::OptimizerImpl(std::string n, ops::Rule r, NormClipping c, double lr)
    : name(std::move(n)),
      rule(std::move(r)),
      clipping(c),
      rate(lr),
      learning_rate(format("slots/{}.learning_rate", name), TensorType{DType::kFloat32, {}}),
      iterations(format("slots/{}.iterations", name), TensorType{DType::kInt64, {}}) {
  for (const ops::Rule::Kept& k : rule.own)
    numbers.push_back(
        std::make_unique<runtime::Variable>(format("slots/{}.{}", name, k.name), TensorType{DType::kFloat32, {}}));
}

void OptimizerImpl::build(std::span<const nn::OwnedWeight> trainable) {
  if (!slots.empty()) {
    const bool same = slots.size() == trainable.size() &&
                      std::equal(slots.begin(), slots.end(), trainable.begin(),
                                 [](const Slots& s, const nn::OwnedWeight& w) { return s.weight == w.weight; });
    if (!same)
      throw Error(Code::kUsage, format("the optimizer \"{}\" already trains other weights", name))
          .hint("give each model an optimizer of its own, and compile again after changing what is trainable");
    return;
  }
  for (const nn::OwnedWeight& w : trainable) {
    Slots s{w.weight, {}};
    for (const ops::Rule::Kept& k : rule.slots)
      s.variables.push_back(std::make_unique<runtime::Variable>(
          format("slots/{}.{}/{}/{}", name, k.name, w.layer->name, w.weight->path()), w.weight->variable.type()));
    slots.push_back(std::move(s));
  }
}

std::vector<runtime::Variable*> OptimizerImpl::variables() {
  std::vector<runtime::Variable*> all{&learning_rate, &iterations};
  for (const auto& v : numbers) all.push_back(v.get());
  for (const Slots& s : slots)
    for (const auto& v : s.variables) all.push_back(v.get());
  return all;
}

namespace {

// Places are zeros; pages of a slot that begins with zeros stay untouched until its first step.
void fill(runtime::Variable& v, double initial) {
  if (initial == 0) return;
  v.overwrite([&](Tensor& all) {
    if (all.dtype() == DType::kFloat64)
      std::ranges::fill(all.values<double>(), initial);
    else
      std::ranges::fill(all.values<float>(), float(initial));
  });
}

}  // namespace

void OptimizerImpl::place(runtime::Variable& beside) {
  std::vector<std::pair<runtime::Variable*, double>> fresh;
  const auto begins = [&](runtime::Variable& v, double initial) {
    if (!v.placed()) fresh.emplace_back(&v, initial);
  };
  begins(learning_rate, rate);
  for (size_t i = 0; i < numbers.size(); ++i) begins(*numbers[i], rule.own[i].initial);
  for (const Slots& s : slots)
    for (size_t i = 0; i < s.variables.size(); ++i) begins(*s.variables[i], rule.slots[i].initial);
  std::vector<runtime::Variable*> all = variables();
  all.push_back(&beside);
  runtime::place(all, "slots");
  for (const auto& [v, initial] : fresh) fill(*v, initial);
}

std::vector<Value> OptimizerImpl::with_scales(Builder& b, Value scalars, std::span<const Value> gradients) const {
  std::vector<Value> all(gradients.size(), scalars);
  if (!clipping.any()) return all;
  const auto squares = [&](Value g) { return ops::cast(b, ops::sum(b, ops::square(b, g)), DType::kFloat32); };
  const auto with = [&](Value scale) { return ops::concatenate(b, {scalars, ops::reshape(b, scale, {1})}, 0); };
  if (clipping.each > 0) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i]) continue;
      const Value limit = b.scalar(DType::kFloat32, clipping.each);
      all[i] = with(ops::divide(b, limit, ops::maximum(b, ops::sqrt(b, squares(gradients[i])), limit)));
    }
    return all;
  }
  Value total;
  for (const Value& g : gradients)
    if (g) total = total ? ops::add(b, total, squares(g)) : squares(g);
  if (!total) return all;
  // Once one gradient is not finite, the scale is NaN, and so is every weight: as in Keras, nothing goes on in silence.
  const Value norm = ops::sqrt(b, total), limit = b.scalar(DType::kFloat32, clipping.global);
  const Value one = b.scalar(DType::kFloat32, 1),
              least = ops::minimum(b, ops::divide(b, one, norm), ops::divide(b, one, limit));
  const Value scale = ops::add(b, ops::multiply(b, limit, least), ops::subtract(b, norm, norm));
  std::ranges::fill(all, with(scale));
  return all;
}

void OptimizerImpl::update(Builder& b, std::span<const nn::OwnedWeight> trainable, std::span<const Value> weights,
                           std::span<const Value> gradients) {
  const auto read = [&](runtime::Variable& v) { return b.variable(v.account(), v.type(), &v); };
  Value lr, count;
  std::vector<Value> own, sizes, scalars;
  {
    const Builder::Scope scope(b, name, graph::Phase::kUpdate);
    lr = read(learning_rate), count = read(iterations);
    for (const auto& v : numbers) own.push_back(read(*v));
    sizes = ops::step_size(b, rule, lr, count, own);
    scalars = with_scales(b, sizes[0], gradients);
  }
  for (size_t i = 0; i < trainable.size(); ++i) {
    if (!gradients[i]) continue;
    const Builder::Scope scope(b, trainable[i].layer->name, graph::Phase::kUpdate);
    std::vector<Value> before;
    for (const auto& v : slots[i].variables) before.push_back(read(*v));
    const auto after = ops::optimizer_step(b, rule, weights[i], before, gradients[i], scalars[i]);
    b.graph().updates.push_back({weights[i], after[0]});
    for (size_t s = 0; s < before.size(); ++s) b.graph().updates.push_back({before[s], after[s + 1]});
  }
  const Builder::Scope scope(b, name, graph::Phase::kUpdate);
  for (size_t i = 0; i < own.size(); ++i) b.graph().updates.push_back({own[i], sizes[1 + i]});
  b.graph().updates.push_back({count, ops::add(b, count, 1)});
}

void Settings::number(const char* key, double& value, double low, double high) const {
  if (source_) source_->number(key, value);
  if (value >= low && value <= high) return;
  const std::string range =
      high == kAny ? format("be a number that is not below {}", low) : format("lie between {} and {}", low, high);
  throw Error(Code::kUsage, format("{}: {} is {}, but must {}", optimizer_, key, value, range));
}

void Settings::expect_one_way(double norm, double value, double global) const {
  if ((norm > 0) + (value > 0) + (global > 0) > 1)
    throw Error(
        Code::kUsage,
        format("{}: clipnorm is {}, clipvalue {} and global_clipnorm {}, but gradients are clipped in one way only",
               optimizer_, norm, value, global))
        .hint("leave all but one of them at 0");
}

namespace {

std::string small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = char(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

}  // namespace
}  // namespace train

Optimizer::Optimizer(std::string_view name) {
  const std::string wanted = train::small_letters(name);
  for (const train::OptimizerKind* k : train::optimizer_kinds())
    if (train::small_letters(k->type) == wanted) {
      *this = k->make(nullptr);
      return;
    }
  std::string all;
  for (const std::string& k : known()) all += (all.empty() ? "" : ", ") + k;
  throw Error(Code::kUsage, format("optimizer \"{}\" is not known", name)).hint("known are " + all);
}

std::vector<std::string> Optimizer::known() {
  std::vector<std::string> names;
  for (const train::OptimizerKind* k : train::optimizer_kinds()) names.push_back(train::small_letters(k->type));
  return names;
}

const std::string& Optimizer::name() const { return impl_->name; }
double Optimizer::learning_rate() const {
  return impl_->learning_rate.placed() ? double(impl_->learning_rate.get<float>()) : impl_->rate;
}
void Optimizer::set_learning_rate(double learning_rate) {
  train::Settings(impl_->name, nullptr).number("learning_rate", learning_rate);
  impl_->rate = learning_rate;
  if (impl_->learning_rate.placed()) impl_->learning_rate.put(float(learning_rate));
}
int64_t Optimizer::iterations() const { return impl_->iterations.placed() ? impl_->iterations.get<int64_t>() : 0; }

}  // namespace millpond
