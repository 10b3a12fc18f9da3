#include "millpond/losses.h"

#include <algorithm>

#include "base/format.h"
#include "nn/layer.h"
#include "nn/loss.h"
#include "nn/options.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/softmax.h"
#include "ops/softmax_cross_entropy.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {

using ops::Function;

namespace {
constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

Value clip(Builder& b, Value x, double low, double high) {
  return ops::binary(b, Function::k_minimum, ops::binary(b, Function::k_maximum, x, low), high);
}
Value one_minus(Builder& b, Value x) { return ops::add(b, ops::negate(b, x), 1); }

Value behind(Value v, auto&& made_by) {  // looks through reshapes: they only rename dimensions
  const graph::Node* n = v.node;
  while (n->role == graph::Role::kOperator && n->op->name() == "reshape") n = n->input(0).node;
  return n->role == graph::Role::kOperator && made_by(*n) ? n->input(0) : Value{};
}

void expect_same(const LossImpl& loss, Value y, Value p) {
  if (y.shape() != p.shape())
    throw Error(Code::kShape, format("{}: labels are {}, but predictions are {}", loss.name, y.shape(), p.shape()))
        .hint("give labels the shape of the predictions");
}
}  // namespace

Value logits_of_softmax(Value v) {
  // A softmax runs along the last axis, so only one of the very same shape is the prediction's.
  const Value z =
      v.node->role == graph::Role::kOperator && v.node->op->name() == "softmax" ? v.node->input(0) : Value{};
  return z;
}
Value logits_of_sigmoid(Value v) {
  return behind(v, [](const graph::Node& n) {
    const auto* u = dynamic_cast<const ops::Unary*>(n.op.get());
    return u && u->function == Function::k_sigmoid;
  });
}

Labelling labelling(const Shape& y, const Shape& p) {
  const int64_t last_y = y.rank() ? y.back() : 1, last_p = p.rank() ? p.back() : 1;
  if (last_p == 1) return Labelling::kBinary;
  return y.rank() < p.rank() || last_y == 1 ? Labelling::kSparse : Labelling::kCategorical;
}

void match_ranks(Builder& b, Value& y, Value& p) {
  const auto drop_last = [&](Value v) { return ops::reshape(b, v, v.shape().slice(0, v.shape().rank() - 1)); };
  const auto add_last = [&](Value v) {
    std::vector<int64_t> dims(v.shape().begin(), v.shape().end());
    dims.push_back(1);
    return ops::reshape(b, v, Shape(dims));
  };
  const auto match = [&](Value& longer, Value& shorter) {
    if (longer.shape().rank() != shorter.shape().rank() + 1 || longer.shape().back() != 1) return;
    if (shorter.shape().rank() == 1)
      shorter = add_last(shorter);
    else
      longer = drop_last(longer);
  };
  match(y, p);
  match(p, y);
}

Value wide(Builder& b, Value v) {
  if (!is_half(v.dtype())) return v;
  const auto cast = [&](Value x) { return ops::cast(b, x, DType::kFloat32); };
  if (const Value z = logits_of_softmax(v)) return ops::softmax(b, cast(z));
  if (const Value z = logits_of_sigmoid(v)) return ops::reshape(b, ops::sigmoid(b, cast(z)), v.shape());
  return cast(v);
}

Value mean_loss(Builder& b, const LossImpl& loss, Value y, Value prediction, Value mask) {
  const Value v = loss.values(b, y, prediction);
  if (!mask) return v.shape().rank() == 0 ? v : ops::mean(b, v);
  // Keras's apply_mask: what counts weighs so much more that the weights sum up to the number of them.
  constexpr double kEpsilon = 1e-7;
  Value weight = ops::cast(b, mask, v.dtype());
  const Value valid = ops::add(b, ops::sum(b, weight), kEpsilon);
  weight = ops::multiply(b, weight, ops::divide(b, b.scalar(v.dtype(), double(weight.shape().size())), valid));
  if (weight.shape() != v.shape())
    throw Error(Code::kShape,
                format("{}: losses are {}, but the mask of the output is {}", loss.type, v.shape(), mask.shape()));
  return ops::mean(b, ops::multiply(b, v, weight));
}

namespace {

struct ErrorLoss final : LossImpl {
  bool squared;
  explicit ErrorLoss(bool s) : squared(s) {}
  Value values(Builder& b, Value y, Value p) const override {
    match_ranks(b, y, p);
    expect_same(*this, y, p);
    const Value d = ops::subtract(b, y, p);
    return ops::mean(b, squared ? ops::square(b, d) : ops::abs(b, d), {-1});
  }
};

void probability_options(Describer& d, CrossentropyOptions& o) {
  d.option("from_logits", o.from_logits);
  d.option("label_smoothing", o.label_smoothing, between(0, 1));
  d.fixed("axis", "-1");
}

struct BinaryCrossentropyImpl final : LossImpl {
  CrossentropyOptions o;
  explicit BinaryCrossentropyImpl(CrossentropyOptions options = {}) : o(std::move(options)) {}
  void options(Describer& d) override { probability_options(d, o); }
  Value values(Builder& b, Value y, Value p) const override {
    match_ranks(b, y, p);
    expect_same(*this, y, p);
    if (o.label_smoothing != 0) y = ops::add(b, ops::multiply(b, y, 1 - o.label_smoothing), 0.5 * o.label_smoothing);
    Value z = logits_of_sigmoid(p);
    if (!z && o.from_logits) z = p;
    Value loss;
    if (z) {
      if (z.shape() != p.shape()) z = ops::reshape(b, z, p.shape());
      loss = ops::sigmoid_cross_entropy(b, z, y);
    } else {
      p = clip(b, p, kEpsilon, 1 - kEpsilon);
      loss = ops::negate(b, ops::add(b, ops::multiply(b, y, ops::log(b, p)),
                                     ops::multiply(b, one_minus(b, y), ops::log(b, one_minus(b, p)))));
    }
    return ops::mean(b, loss, {-1});
  }
};

struct CategoricalCrossentropyImpl final : LossImpl {
  CrossentropyOptions o;
  explicit CategoricalCrossentropyImpl(CrossentropyOptions options = {}) : o(std::move(options)) {}
  void options(Describer& d) override { probability_options(d, o); }
  Value values(Builder& b, Value y, Value p) const override {
    match_ranks(b, y, p);
    expect_same(*this, y, p);
    if (o.label_smoothing != 0)
      y = ops::add(b, ops::multiply(b, y, 1 - o.label_smoothing), o.label_smoothing / double(p.shape().back()));
    Value z = logits_of_softmax(p);
    if (!z && o.from_logits) z = p;
    if (z) {
      const Value shifted = ops::subtract(b, z, ops::max(b, z, {-1}, true));
      const Value log_sum = ops::log(b, ops::sum(b, ops::exp(b, shifted), {-1}, true));
      return ops::sum(b, ops::multiply(b, y, ops::subtract(b, log_sum, shifted)), {-1});
    }
    p = clip(b, ops::divide(b, p, ops::sum(b, p, {-1}, true)), kEpsilon, 1 - kEpsilon);
    return ops::negate(b, ops::sum(b, ops::multiply(b, y, ops::log(b, p)), {-1}));
  }
};

struct SparseCategoricalCrossentropyImpl final : LossImpl {
  CrossentropyOptions o;
  explicit SparseCategoricalCrossentropyImpl(CrossentropyOptions options = {}) : o(std::move(options)) {}
  void options(Describer& d) override {
    d.option("from_logits", o.from_logits);
    d.none({"ignore_class"});
    d.outdated({"axis"});
  }
  void settle() override {
    if (o.label_smoothing != 0)
      throw Error(Code::kUsage,
                  format("{}: label_smoothing is {}, but sparse labels have none", type, o.label_smoothing))
          .hint("CategoricalCrossentropy has it, for one-hot labels");
  }
  Labels labels(const TensorType& p) const override { return {DType::kInt32, p.shape.back()}; }
  Shape label_shape(const Shape& p) const override { return p.slice(0, p.rank() - 1); }
  Value values(Builder& b, Value y, Value p) const override {
    const Shape rows = p.shape().slice(0, p.shape().rank() - 1);
    if (y.shape() != rows && y.shape().size() == rows.size() && y.shape().rank() == p.shape().rank() &&
        y.shape().back() == 1)
      y = ops::reshape(b, y, rows);
    if (y.shape() != rows)
      throw Error(Code::kShape, format("{}: labels are {}, but predictions are {}", name, y.shape(), p.shape()))
          .hint(format("give labels the shape {}", rows));
    if (const Value z = logits_of_softmax(p)) return ops::softmax_cross_entropy(b, z, y);
    if (!o.from_logits) p = ops::log(b, clip(b, p, kEpsilon, 1 - kEpsilon));
    return ops::softmax_cross_entropy(b, p, y);
  }
};

struct ChoosingCrossentropy final : LossImpl {
  std::shared_ptr<const LossImpl> resolve(const Shape& y, const Shape& p) const override {
    switch (labelling(y, p)) {
      case Labelling::kBinary:
        return BinaryCrossentropy().impl();
      case Labelling::kSparse:
        return SparseCategoricalCrossentropy().impl();
      case Labelling::kCategorical:
        break;
    }
    return CategoricalCrossentropy().impl();
  }
  Value values(Builder& b, Value y, Value p) const override { return resolve(y.shape(), p.shape())->values(b, y, p); }
  Labels labels(const TensorType& p) const override { return resolve(p.shape, p.shape)->labels(p); }
};

/// Without a name it has that of its class.
std::shared_ptr<const LossImpl> settled(std::shared_ptr<LossImpl> loss, std::string type, std::string name) {
  loss->name = name.empty() ? snake_case(type) : std::move(name);
  loss->type = std::move(type);
  check_options(*loss, loss->type);
  loss->settle();
  return loss;
}

template <class Impl>
std::shared_ptr<LossImpl> made_loss() {
  return std::make_shared<Impl>();
}

const LossClass* loss_named(std::string_view name) {
  for (const LossClass& c : loss_classes())
    if (c.type == name || std::ranges::find(c.names, name) != c.names.end()) return &c;
  return nullptr;
}

}  // namespace

const std::vector<LossClass>& loss_classes() {
  static const std::vector<LossClass> all{
      {"MeanSquaredError",
       {"mse", "mean_squared_error", "MSE"},
       [] { return std::shared_ptr<LossImpl>(std::make_shared<ErrorLoss>(true)); }},
      {"MeanAbsoluteError",
       {"mae", "mean_absolute_error", "MAE"},
       [] { return std::shared_ptr<LossImpl>(std::make_shared<ErrorLoss>(false)); }},
      {"BinaryCrossentropy", {"binary_crossentropy", "bce", "BCE"}, made_loss<BinaryCrossentropyImpl>},
      {"CategoricalCrossentropy", {"categorical_crossentropy"}, made_loss<CategoricalCrossentropyImpl>},
      {"SparseCategoricalCrossentropy",
       {"sparse_categorical_crossentropy"},
       made_loss<SparseCategoricalCrossentropyImpl>},
      {"Crossentropy",
       {"crossentropy", "ce"},
       made_loss<ChoosingCrossentropy>},  // ours: chooses one of the three by the shapes
  };
  return all;
}

void LossImpl::describe(Describer& d) {
  d.option("name", name);
  d.fixed("reduction", "\"sum_over_batch_size\"");
  options(d);
  d.outdated({"fn", "dtype"});
}

}  // namespace nn

const std::string& Loss::name() const {
  static const std::string kNone;
  return impl_ ? impl_->name : kNone;
}
std::string_view Loss::type() const { return impl_ ? std::string_view(impl_->type) : std::string_view(); }

Loss::Loss(std::string_view name) {
  const nn::LossClass* c = nn::loss_named(name);
  if (!c) {
    std::vector<std::string> known;
    for (const nn::LossClass& k : nn::loss_classes()) known.push_back(k.names[0]);
    throw Error(Code::kUsage, format("loss \"{}\" is not known", name)).hint(nn::meant(name, known, true));
  }
  impl_ = nn::settled(c->make(), c->type, std::string(name));
}

std::string Loss::get_config() const {
  if (!impl_) throw Error(Code::kUsage, "an empty loss has no options");
  return nn::to_text(nn::write_options(*impl_));
}

Loss Loss::from_config(std::string_view type, std::string_view config) {
  const nn::LossClass* c = nn::loss_named(type);
  if (!c) {
    std::vector<std::string> known;
    for (const nn::LossClass& k : nn::loss_classes()) known.push_back(k.type);
    throw Error(Code::kUnsupported, format("loss {} is not here yet", type)).hint(nn::meant(type, known));
  }
  auto impl = c->make();
  nn::read_options(*impl, nn::from_text(config, "a loss's options"), c->type);
  std::string name = impl->name;
  return Loss(nn::settled(std::move(impl), c->type, std::move(name)));
}

namespace losses {
MeanSquaredError::MeanSquaredError(std::string name)
    : Loss(nn::settled(std::make_shared<nn::ErrorLoss>(true), "MeanSquaredError", std::move(name))) {}
MeanAbsoluteError::MeanAbsoluteError(std::string name)
    : Loss(nn::settled(std::make_shared<nn::ErrorLoss>(false), "MeanAbsoluteError", std::move(name))) {}
BinaryCrossentropy::BinaryCrossentropy(CrossentropyOptions o)
    : Loss(nn::settled(std::make_shared<nn::BinaryCrossentropyImpl>(o), "BinaryCrossentropy", o.name)) {}
CategoricalCrossentropy::CategoricalCrossentropy(CrossentropyOptions o)
    : Loss(nn::settled(std::make_shared<nn::CategoricalCrossentropyImpl>(o), "CategoricalCrossentropy", o.name)) {}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(CrossentropyOptions o)
    : Loss(nn::settled(std::make_shared<nn::SparseCategoricalCrossentropyImpl>(o), "SparseCategoricalCrossentropy",
                       o.name)) {}
}  // namespace losses

}  // namespace millpond
