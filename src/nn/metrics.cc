#include "millpond/metrics.h"

#include <cmath>

#include "base/format.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "ops/argmax.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {

using ops::Function;

namespace {

Value hits(Builder& b, Value y, Value answer) {
  if (y.shape() != answer.shape()) throw Error(Code::kShape, format("accuracy: labels are {}, but answers are {}", y.shape(), answer.shape()));
  return ops::cast(b, ops::equal(b, ops::cast(b, answer, y.dtype()), y), DType::kFloat32);
}
// The largest probability belongs to the largest logit: softmax itself need not be computed for it.
Value best(Builder& b, Value prediction) {
  const Value z = logits_of_softmax(prediction);
  return ops::argmax(b, z ? z : prediction);
}

struct BinaryAccuracyImpl final : MetricImpl {
  double threshold;
  explicit BinaryAccuracyImpl(double t) : threshold(t) {}
  Value values(Builder& b, Value y, Value p) const override {
    match_ranks(b, y, p);
    const Shape shape = p.shape();
    double limit = threshold;
    if (const Value z = logits_of_sigmoid(p); z && threshold > 0 && threshold < 1) {
      p = z.shape() == shape ? z : ops::reshape(b, z, shape);
      limit = std::log(threshold / (1 - threshold));
    }
    return hits(b, y, ops::binary(b, Function::k_greater, p, limit));
  }
};

struct CategoricalAccuracyImpl final : MetricImpl {
  Value values(Builder& b, Value y, Value p) const override { return hits(b, ops::argmax(b, y), best(b, p)); }
};

struct SparseCategoricalAccuracyImpl final : MetricImpl {
  Value values(Builder& b, Value y, Value p) const override {
    const Value answer = best(b, p);
    if (y.shape() != answer.shape() && y.shape().rank() == p.shape().rank() && y.shape().back() == 1) y = ops::reshape(b, y, answer.shape());
    return hits(b, y, answer);
  }
};

struct AccuracyImpl final : MetricImpl {
  Value values(Builder& b, Value y, Value p) const override {
    switch (labelling(y.shape(), p.shape())) {
      case Labelling::kBinary: return BinaryAccuracyImpl(0.5).values(b, y, p);
      case Labelling::kSparse: return SparseCategoricalAccuracyImpl().values(b, y, p);
      case Labelling::kCategorical: break;
    }
    return CategoricalAccuracyImpl().values(b, y, p);
  }
};

struct ErrorMetric final : MetricImpl {
  bool squared;
  explicit ErrorMetric(bool s) : squared(s) {}
  Value values(Builder& b, Value y, Value p) const override {
    y = ops::cast(b, y, p.dtype());
    match_ranks(b, y, p);
    if (y.shape() != p.shape()) throw Error(Code::kShape, format("{}: labels are {}, but predictions are {}", name, y.shape(), p.shape()));
    const Value d = ops::subtract(b, y, p);
    return ops::mean(b, squared ? ops::square(b, d) : ops::abs(b, d), {-1});
  }
};

template <class T, class... Args>
std::shared_ptr<const MetricImpl> make_metric(std::string name, Args&&... args) {
  auto impl = std::make_shared<T>(std::forward<Args>(args)...);
  impl->name = std::move(name);
  return impl;
}

}  // namespace
}  // namespace nn

const std::string& Metric::name() const { return impl_->name; }

Metric::Metric(std::string_view name) {
  std::string n(name);
  if (name == "accuracy" || name == "acc") impl_ = metrics::Accuracy(n).impl();
  else if (name == "binary_accuracy") impl_ = metrics::BinaryAccuracy(n).impl();
  else if (name == "categorical_accuracy") impl_ = metrics::CategoricalAccuracy(n).impl();
  else if (name == "sparse_categorical_accuracy") impl_ = metrics::SparseCategoricalAccuracy(n).impl();
  else if (name == "mse" || name == "mean_squared_error" || name == "MSE") impl_ = metrics::MeanSquaredError(n).impl();
  else if (name == "mae" || name == "mean_absolute_error" || name == "MAE") impl_ = metrics::MeanAbsoluteError(n).impl();
  else
    throw Error(Code::kUsage, format("metric \"{}\" is not known", name))
        .hint("known are accuracy, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy, mse, mae");
}

namespace metrics {
Accuracy::Accuracy(std::string name) : Metric(nn::make_metric<nn::AccuracyImpl>(std::move(name))) {}
BinaryAccuracy::BinaryAccuracy(std::string name, double threshold) : Metric(nn::make_metric<nn::BinaryAccuracyImpl>(std::move(name), threshold)) {}
CategoricalAccuracy::CategoricalAccuracy(std::string name) : Metric(nn::make_metric<nn::CategoricalAccuracyImpl>(std::move(name))) {}
SparseCategoricalAccuracy::SparseCategoricalAccuracy(std::string name) : Metric(nn::make_metric<nn::SparseCategoricalAccuracyImpl>(std::move(name))) {}
MeanSquaredError::MeanSquaredError(std::string name) : Metric(nn::make_metric<nn::ErrorMetric>(std::move(name), true)) {}
MeanAbsoluteError::MeanAbsoluteError(std::string name) : Metric(nn::make_metric<nn::ErrorMetric>(std::move(name), false)) {}
}  // namespace metrics

}  // namespace millpond
