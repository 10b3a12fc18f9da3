#include "nn/confusion.h"
#include "ops/binary.h"

namespace millpond {
namespace nn {
namespace {

struct RecallImpl final : CountingMetric {
  std::optional<double> threshold;  // none: 0.5
  RecallImpl() = default;
  explicit RecallImpl(double t) : threshold(t) {}
  std::string_view type() const override { return "Recall"; }
  void options(Describer& d) override { threshold_options(d, threshold); }
  std::vector<Count> counts() const override {
    return {{"true_positives", {DType::kInt64, {1}}}, {"positives", {DType::kInt64, {1}}}};
  }
  std::vector<Value> update(Builder& b, std::span<const Value> before, Value y, Value p) const override {
    const Confusion c = confusion(b, name, y, p, {threshold.value_or(kThreshold)});
    return {ops::add(b, before[0], c.true_positives), ops::add(b, before[1], c.positives)};
  }
  double result(std::span<const Tensor> counts) const override { return share(counts[0].at(0), counts[1].at(0)); }
};

}  // namespace

constinit const MetricFile metric_files::recall{{{{"recall"}, made_metric<RecallImpl>}}};

}  // namespace nn

metrics::Recall::Recall(std::string name, double threshold)
    : Metric(nn::make_metric<nn::RecallImpl>(std::move(name), threshold)) {}

}  // namespace millpond
