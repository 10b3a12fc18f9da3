#include "nn/confusion.h"
#include "ops/binary.h"

namespace millpond {
namespace nn {
namespace {

struct SpecificityImpl final : CountingMetric {
  double threshold;
  explicit SpecificityImpl(double t = kThreshold) : threshold(t) {}
  std::string_view type() const override { return "Specificity"; }
  void options(Describer& d) override { d.option("threshold", threshold, between(0, 1)); }
  std::vector<Count> counts() const override {
    return {{"false_positives", {DType::kInt64, {1}}}, {"negatives", {DType::kInt64, {1}}}};
  }
  std::vector<Value> update(Builder& b, std::span<const Value> before, Value y, Value p) const override {
    const Confusion c = confusion(b, name, y, p, {threshold});
    return {ops::add(b, before[0], c.false_positives), ops::add(b, before[1], c.negatives)};
  }
  double result(std::span<const Tensor> counts) const override {
    return share(counts[1].at(0) - counts[0].at(0), counts[1].at(0));
  }
};

}  // namespace

constinit const MetricFile metric_files::specificity{{{{"specificity"}, made_metric<SpecificityImpl>}}};

}  // namespace nn

Specificity::Specificity(std::string name, double threshold)
    : Metric(nn::make_metric<nn::SpecificityImpl>(std::move(name), threshold)) {}

}  // namespace millpond
