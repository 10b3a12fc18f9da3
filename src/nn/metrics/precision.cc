#include "nn/confusion.h"
#include "ops/binary.h"

namespace millpond {
namespace nn {
namespace {

struct PrecisionImpl final : CountingMetric {
  std::optional<double> threshold;  // none: 0.5
  PrecisionImpl() = default;
  explicit PrecisionImpl(double t) : threshold(t) {}
  std::string_view type() const override { return "Precision"; }
  void options(Describer& d) override { threshold_options(d, threshold); }
  std::vector<Count> counts() const override {
    return {{"true_positives", {DType::kInt64, {1}}}, {"false_positives", {DType::kInt64, {1}}}};
  }
  std::vector<Value> update(Builder& b, std::span<const Value> before, Value y, Value p) const override {
    const Confusion c = confusion(b, name, y, p, {threshold.value_or(kThreshold)});
    return {ops::add(b, before[0], c.true_positives), ops::add(b, before[1], c.false_positives)};
  }
  double result(std::span<const Tensor> counts) const override {
    return share(counts[0].at(0), counts[0].at(0) + counts[1].at(0));
  }
};

}  // namespace

constinit const MetricFile metric_files::precision{{{{"precision"}, made_metric<PrecisionImpl>}}};

}  // namespace nn

metrics::Precision::Precision(std::string name, double threshold)
    : Metric(nn::make_metric<nn::PrecisionImpl>(std::move(name), threshold)) {}

}  // namespace millpond
