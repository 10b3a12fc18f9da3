#include <cmath>

#include "base/format.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "ops/argmax.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reshape.h"

namespace millpond {
namespace nn {
namespace {

using ops::Function;

Value hits(Builder& b, Value y, Value answer) {
  if (y.shape() != answer.shape())
    throw Error(Code::kShape, format("accuracy: labels are {}, but answers are {}", y.shape(), answer.shape()));
  return ops::cast(b, ops::equal(b, ops::cast(b, answer, y.dtype()), y), DType::kFloat32);
}
// The largest probability belongs to the largest logit: softmax itself need not be computed for it.
Value best(Builder& b, Value prediction) {
  const Value z = logits_of_softmax(prediction);
  return ops::argmax(b, z ? z : prediction);
}

struct BinaryAccuracyImpl final : MeanMetric {
  double threshold;
  explicit BinaryAccuracyImpl(double t = 0.5) : threshold(t) {}
  std::string_view type() const override { return "BinaryAccuracy"; }
  void options(Describer& d) override { d.option("threshold", threshold); }
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

struct CategoricalAccuracyImpl final : MeanMetric {
  std::string_view type() const override { return "CategoricalAccuracy"; }
  Value values(Builder& b, Value y, Value p) const override { return hits(b, ops::argmax(b, y), best(b, p)); }
};

struct SparseCategoricalAccuracyImpl final : MeanMetric {
  std::string_view type() const override { return "SparseCategoricalAccuracy"; }
  Value values(Builder& b, Value y, Value p) const override {
    const Value answer = best(b, p);
    if (y.shape() != answer.shape() && y.shape().rank() == p.shape().rank() && y.shape().back() == 1)
      y = ops::reshape(b, y, answer.shape());
    return hits(b, y, answer);
  }
};

// Keras's class of this name compares numbers; "accuracy" means one of the three above, there as here.
struct AccuracyImpl final : MeanMetric {
  Value values(Builder& b, Value y, Value p) const override {
    switch (labelling(y.shape(), p.shape())) {
      case Labelling::kBinary:
        return BinaryAccuracyImpl(0.5).values(b, y, p);
      case Labelling::kSparse:
        return SparseCategoricalAccuracyImpl().values(b, y, p);
      case Labelling::kCategorical:
        break;
    }
    return CategoricalAccuracyImpl().values(b, y, p);
  }
};

}  // namespace

constinit const MetricFile metric_files::accuracy{
    {{{"accuracy", "acc"}, made_metric<AccuracyImpl>},
     {{"binary_accuracy"}, made_metric<BinaryAccuracyImpl>},
     {{"categorical_accuracy"}, made_metric<CategoricalAccuracyImpl>},
     {{"sparse_categorical_accuracy"}, made_metric<SparseCategoricalAccuracyImpl>}}};

}  // namespace nn

metrics::Accuracy::Accuracy(std::string name) : Metric(nn::make_metric<nn::AccuracyImpl>(std::move(name))) {}
metrics::BinaryAccuracy::BinaryAccuracy(std::string name, double threshold)
    : Metric(nn::make_metric<nn::BinaryAccuracyImpl>(std::move(name), threshold)) {}
metrics::CategoricalAccuracy::CategoricalAccuracy(std::string name)
    : Metric(nn::make_metric<nn::CategoricalAccuracyImpl>(std::move(name))) {}
metrics::SparseCategoricalAccuracy::SparseCategoricalAccuracy(std::string name)
    : Metric(nn::make_metric<nn::SparseCategoricalAccuracyImpl>(std::move(name))) {}

}  // namespace millpond
