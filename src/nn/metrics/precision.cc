#include "nn/confusion.h"
#include "ops/binary.h"

namespace millpond {
namespace nn {
namespace {

struct PrecisionImpl final : CountingMetric {
  double threshold;
  explicit PrecisionImpl(double t) : threshold(t) {}
  std::vector<Count> counts() const override {
    return {{"true_positives", {DType::kInt64, {1}}}, {"false_positives", {DType::kInt64, {1}}}};
  }
  std::vector<Value> update(Builder& b, std::span<const Value> before, Value y, Value p) const override {
    const Confusion c = confusion(b, name, y, p, {threshold});
    return {ops::add(b, before[0], c.true_positives), ops::add(b, before[1], c.false_positives)};
  }
  double result(std::span<const Tensor> counts) const override {
    return share(counts[0].at(0), counts[0].at(0) + counts[1].at(0));
  }
};

}  // namespace

constinit const MetricFile metric_files::precision{
    {{"precision", "Precision", "", [](std::string name) -> Metric { return Precision(std::move(name)); }}}};

}  // namespace nn

metrics::Precision::Precision(std::string name, double threshold)
    : Metric(nn::make_metric<nn::PrecisionImpl>(std::move(name), threshold)) {}

}  // namespace millpond
