#include "train/optimizer.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/convert.h"
#include "base/format.h"
#include "base/with_type.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/concatenate.h"
#include "ops/optimizer_step.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
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

namespace {
// The layer whose name a slot bears; of a variable that belongs to none: empty.
const std::string& owner_of(const nn::OwnedWeight& w) { return w.layer ? w.layer->name : w.weight->owner; }
}  // namespace

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
          format("slots/{}.{}/{}{}", name, k.name, owner_of(w).empty() ? "" : owner_of(w) + "/", w.weight->path()),
          w.weight->variable.type()));
    slots.push_back(std::move(s));
  }
}

std::vector<runtime::Variable*> OptimizerImpl::variables() {
  std::vector<runtime::Variable*> all{&learning_rate, &iterations};
  if (loss_scale) all.insert(all.end(), {&loss_scale->scale, &loss_scale->good_steps});
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
    with_type(all.dtype(), [&]<class T>() { std::ranges::fill(all.values<T>(), convert<T>(initial)); });
  });
}

}  // namespace

void OptimizerImpl::place(std::span<runtime::Variable* const> beside) {
  std::vector<std::pair<runtime::Variable*, double>> fresh;
  const auto begins = [&](runtime::Variable& v, double initial) {
    if (!v.placed()) fresh.emplace_back(&v, initial);
  };
  begins(learning_rate, rate);
  if (loss_scale) begins(loss_scale->scale, LossScale::kInitial);
  for (size_t i = 0; i < numbers.size(); ++i) begins(*numbers[i], rule.own[i].initial);
  for (const Slots& s : slots)
    for (size_t i = 0; i < s.variables.size(); ++i) begins(*s.variables[i], rule.slots[i].initial);
  std::vector<runtime::Variable*> all = variables();
  all.insert(all.end(), beside.begin(), beside.end());
  runtime::place(all, "slots");
  for (const auto& [v, initial] : fresh) fill(*v, initial);
}

std::vector<Value> OptimizerImpl::with_scales(Builder& b, Value scalars, std::span<const Value> gradients) const {
  std::vector<Value> all(gradients.size(), scalars);
  if (!clipping.any()) return all;
  const auto squares = [&](Value g) { return ops::cast(b, ops::sum(b, ops::square(b, g)), DType::kFloat32); };
  const auto with = [&](Value scale) {
    return ops::concatenate(b, {scalars, ops::cast(b, ops::reshape(b, scale, {1}), scalars.dtype())}, 0);
  };
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

void OptimizerImpl::scale_losses() {
  if (loss_scale) return;
  loss_scale.reset(new LossScale{{format("slots/{}.loss_scale", name), TensorType{DType::kFloat32, {}}},
                                 {format("slots/{}.good_steps", name), TensorType{DType::kInt64, {}}}});
}

Value OptimizerImpl::scaled(Builder& b, Value loss) {
  if (!loss_scale) return loss;
  return ops::multiply(b, loss, ops::cast(b, read(b, loss_scale->scale), loss.dtype()));
}

namespace {

// A rule's update written out, so that its results can be chosen from afterwards; fusion makes one pass of it again.
std::vector<Value> written_out(Builder& b, const ops::Rule& rule, std::vector<Value> registers, Value scalars) {
  for (int k = 0; k < rule.scalar_count(); ++k)
    registers.push_back(ops::reshape(b, ops::slice(b, scalars, {k}, {1}), {}));
  for (const ops::Instruction& i : rule.update.code) {
    if (i.function == ops::Function::k_constant)
      registers.push_back(b.scalar(rule.dtype, i.immediate));
    else if (ops::arity(i.function) == 1)
      registers.push_back(ops::unary(b, i.function, registers[size_t(i.a)]));
    else
      registers.push_back(ops::binary(b, i.function, registers[size_t(i.a)], registers[size_t(i.b)]));
  }
  std::vector<Value> results;
  for (const ops::Result& r : rule.update.results) results.push_back(registers[size_t(r.reg)]);
  return results;
}

}  // namespace

void OptimizerImpl::update(Builder& b, std::span<const nn::OwnedWeight> trainable, std::span<const Value> weights,
                           std::span<const Value> given) {
  std::vector<Value> gradients(given.begin(), given.end());
  Value finite;  // null: nobody asks
  if (loss_scale) {
    const Builder::Scope scope(b, name, graph::Phase::kUpdate);
    Value sum;  // of g - g: 0, or NaN where one of them is not finite
    for (Value& g : gradients) {
      if (!g) continue;
      const Value one = ops::cast(b, ops::sum(b, ops::subtract(b, g, g)), DType::kFloat32);
      sum = sum ? ops::add(b, sum, one) : one;
      g = ops::divide(b, g, ops::cast(b, read(b, loss_scale->scale), g.dtype()));
    }
    if (sum) finite = ops::equal(b, sum, b.scalar(DType::kFloat32, 0));
  }
  const auto becomes = [&](Value variable, Value after) {
    b.graph().updates.push_back({variable, finite ? ops::select(b, finite, after, variable) : after});
  };

  std::map<DType, std::vector<Value>> sizes, scalars;  // by the type of the rule
  std::map<DType, ops::Rule> rules;
  Value count;
  std::vector<Value> own;
  {
    const Builder::Scope scope(b, name, graph::Phase::kUpdate);
    const Value lr = read(b, learning_rate);
    count = read(b, iterations);
    for (const auto& v : numbers) own.push_back(read(b, *v));
    const auto prepare = [&](DType weight) {
      ops::Rule typed = rule.for_weights(weight);
      const DType t = typed.dtype;
      if (!rules.emplace(t, std::move(typed)).second) return;
      sizes[t] = ops::step_size(b, rules.at(t), lr, count, own);
      scalars[t] = with_scales(b, sizes[t][0], gradients);
    };
    for (size_t i = 0; i < trainable.size(); ++i)
      if (gradients[i]) prepare(weights[i].dtype());
    if (rules.empty()) prepare(DType::kFloat32);
  }
  for (size_t i = 0; i < trainable.size(); ++i) {
    if (!gradients[i]) continue;
    const Builder::Scope scope(b, owner_of(trainable[i]), graph::Phase::kUpdate);
    std::vector<Value> before;
    for (const auto& v : slots[i].variables) before.push_back(read(b, *v));
    const DType t = weights[i].dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
    std::vector<Value> after;
    if (finite) {
      std::vector<Value> registers{gradients[i], weights[i]};
      registers.insert(registers.end(), before.begin(), before.end());
      after = written_out(b, rules.at(t), std::move(registers), scalars.at(t)[i]);
    } else {
      after = ops::optimizer_step(b, rules.at(t), weights[i], before, gradients[i], scalars.at(t)[i]);
    }
    becomes(weights[i], after[0]);
    for (size_t s = 0; s < before.size(); ++s) becomes(before[s], after[s + 1]);
  }
  const Builder::Scope scope(b, name, graph::Phase::kUpdate);
  const std::vector<Value>& made = sizes.begin()->second;
  for (size_t i = 0; i < own.size(); ++i) becomes(own[i], made[1 + i]);
  becomes(count, ops::add(b, count, 1));
  if (!finite) return;
  const Value scale = read(b, loss_scale->scale), good = read(b, loss_scale->good_steps);
  const auto whole = [&](int64_t n) { return b.scalar(DType::kInt64, double(n)); };
  const Value grows = ops::equal(b, good, whole(LossScale::kGrowthSteps - 1));
  const Value larger = ops::select(b, grows, ops::multiply(b, scale, 2), scale);
  b.graph().updates.push_back({scale, ops::select(b, finite, larger, ops::multiply(b, scale, 0.5))});
  const Value next = ops::select(b, grows, whole(0), ops::add(b, good, 1));
  b.graph().updates.push_back({good, ops::select(b, finite, next, whole(0))});
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
