#include "millpond/losses.h"

#include "base/format.h"
#include "nn/loss.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/softmax_cross_entropy.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {

using ops::Function;

namespace {
constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

Value clip(Builder& b, Value x, double low, double high) { return ops::binary(b, Function::k_minimum, ops::binary(b, Function::k_maximum, x, low), high); }
Value one_minus(Builder& b, Value x) { return ops::add(b, ops::negate(b, x), 1); }

Value behind(Value v, auto&& made_by) {  // looks through reshapes: they only rename dimensions
  const graph::Node* n = v.node;
  while (n->role == graph::Role::kOperator && n->op->name() == "reshape") n = n->input(0).node;
  return n->role == graph::Role::kOperator && made_by(*n) ? n->input(0) : Value{};
}

void expect_same(const LossImpl& loss, Value y, Value p) {
  if (y.shape() != p.shape())
    throw Error(Code::kShape, format("{}: labels are {}, but predictions are {}", loss.name, y.shape(), p.shape())).hint("give labels the shape of the predictions");
}
}  // namespace

Value logits_of_softmax(Value v) {
  // A softmax runs along the last axis, so only one of the very same shape is the prediction's.
  const Value z = v.node->role == graph::Role::kOperator && v.node->op->name() == "softmax" ? v.node->input(0) : Value{};
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
    if (shorter.shape().rank() == 1) shorter = add_last(shorter);
    else longer = drop_last(longer);
  };
  match(y, p);
  match(p, y);
}

Value mean_loss(Builder& b, const LossImpl& loss, Value y, Value prediction) {
  const Value v = loss.values(b, y, prediction);
  return v.shape().rank() == 0 ? v : ops::mean(b, v);
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

struct BinaryCrossentropyImpl final : LossImpl {
  CrossentropyOptions o;
  explicit BinaryCrossentropyImpl(CrossentropyOptions options) : o(std::move(options)) {}
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
      loss = ops::negate(b, ops::add(b, ops::multiply(b, y, ops::log(b, p)), ops::multiply(b, one_minus(b, y), ops::log(b, one_minus(b, p)))));
    }
    return ops::mean(b, loss, {-1});
  }
};

struct CategoricalCrossentropyImpl final : LossImpl {
  CrossentropyOptions o;
  explicit CategoricalCrossentropyImpl(CrossentropyOptions options) : o(std::move(options)) {}
  Value values(Builder& b, Value y, Value p) const override {
    match_ranks(b, y, p);
    expect_same(*this, y, p);
    if (o.label_smoothing != 0) y = ops::add(b, ops::multiply(b, y, 1 - o.label_smoothing), o.label_smoothing / double(p.shape().back()));
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
  explicit SparseCategoricalCrossentropyImpl(CrossentropyOptions options) : o(std::move(options)) {}
  Labels labels(const TensorType& p) const override { return {DType::kInt32, p.shape.back()}; }
  Shape label_shape(const Shape& p) const override { return p.slice(0, p.rank() - 1); }
  Value values(Builder& b, Value y, Value p) const override {
    const Shape rows = p.shape().slice(0, p.shape().rank() - 1);
    if (y.shape() != rows && y.shape().size() == rows.size() && y.shape().rank() == p.shape().rank() && y.shape().back() == 1) y = ops::reshape(b, y, rows);
    if (y.shape() != rows)
      throw Error(Code::kShape, format("{}: labels are {}, but predictions are {}", name, y.shape(), p.shape())).hint(format("give labels the shape {}", rows));
    if (const Value z = logits_of_softmax(p)) return ops::softmax_cross_entropy(b, z, y);
    if (!o.from_logits) p = ops::log(b, clip(b, p, kEpsilon, 1 - kEpsilon));
    return ops::softmax_cross_entropy(b, p, y);
  }
};

struct ChoosingCrossentropy final : LossImpl {
  std::shared_ptr<const LossImpl> resolve(const Shape& y, const Shape& p) const override {
    switch (labelling(y, p)) {
      case Labelling::kBinary: return BinaryCrossentropy().impl();
      case Labelling::kSparse: return SparseCategoricalCrossentropy().impl();
      case Labelling::kCategorical: break;
    }
    return CategoricalCrossentropy().impl();
  }
  Value values(Builder& b, Value y, Value p) const override { return resolve(y.shape(), p.shape())->values(b, y, p); }
  Labels labels(const TensorType& p) const override { return resolve(p.shape, p.shape)->labels(p); }
};

template <class T, class... Args>
std::shared_ptr<const LossImpl> make_loss(std::string name, Args&&... args) {
  auto impl = std::make_shared<T>(std::forward<Args>(args)...);
  impl->name = std::move(name);
  return impl;
}

CrossentropyOptions checked(CrossentropyOptions o, const char* name) {
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1)) throw Error(Code::kUsage, format("{}: label_smoothing is {}, but must lie between 0 and 1", name, o.label_smoothing));
  if (o.name.empty()) o.name = name;
  return o;
}

}  // namespace
}  // namespace nn

const std::string& Loss::name() const {
  static const std::string kNone;
  return impl_ ? impl_->name : kNone;
}

Loss::Loss(std::string_view name) {
  if (name == "mse" || name == "mean_squared_error" || name == "MSE") *this = losses::MeanSquaredError(std::string(name));
  else if (name == "mae" || name == "mean_absolute_error" || name == "MAE") *this = losses::MeanAbsoluteError(std::string(name));
  else if (name == "bce" || name == "binary_crossentropy" || name == "BCE") *this = losses::BinaryCrossentropy({.name = std::string(name)});
  else if (name == "categorical_crossentropy") *this = losses::CategoricalCrossentropy({.name = std::string(name)});
  else if (name == "sparse_categorical_crossentropy") *this = losses::SparseCategoricalCrossentropy({.name = std::string(name)});
  else if (name == "crossentropy" || name == "ce") impl_ = nn::make_loss<nn::ChoosingCrossentropy>(std::string(name));
  else
    throw Error(Code::kUsage, format("loss \"{}\" is not known", name))
        .hint("known are mse, mae, binary_crossentropy, categorical_crossentropy, sparse_categorical_crossentropy, crossentropy");
}

namespace losses {
MeanSquaredError::MeanSquaredError(std::string name) : Loss(nn::make_loss<nn::ErrorLoss>(std::move(name), true)) {}
MeanAbsoluteError::MeanAbsoluteError(std::string name) : Loss(nn::make_loss<nn::ErrorLoss>(std::move(name), false)) {}
BinaryCrossentropy::BinaryCrossentropy(CrossentropyOptions options) {
  const auto o = nn::checked(std::move(options), "binary_crossentropy");
  static_cast<Loss&>(*this) = Loss(nn::make_loss<nn::BinaryCrossentropyImpl>(o.name, o));
}
CategoricalCrossentropy::CategoricalCrossentropy(CrossentropyOptions options) {
  const auto o = nn::checked(std::move(options), "categorical_crossentropy");
  static_cast<Loss&>(*this) = Loss(nn::make_loss<nn::CategoricalCrossentropyImpl>(o.name, o));
}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(CrossentropyOptions options) {
  const auto o = nn::checked(std::move(options), "sparse_categorical_crossentropy");
  static_cast<Loss&>(*this) = Loss(nn::make_loss<nn::SparseCategoricalCrossentropyImpl>(o.name, o));
}
}  // namespace losses

}  // namespace millpond
