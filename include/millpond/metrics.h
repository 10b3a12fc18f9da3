// Metrics: what is told beside the loss. Sums are made inside the step and added up over an epoch on the host, in double.
// Memory: one number a metric.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millpond {

namespace nn {
struct MetricImpl;
}

class Metric {
 public:
  /// "accuracy" (binary, categorical or sparse, by the shapes), "binary_accuracy", "mse", "mae", ...; shown under this very
  /// name. Throws Error(kUsage) naming the known ones.
  Metric(std::string_view name);
  Metric(const char* name) : Metric(std::string_view(name)) {}
  Metric(const std::string& name) : Metric(std::string_view(name)) {}
  explicit Metric(std::shared_ptr<const nn::MetricImpl> impl) : impl_(std::move(impl)) {}

  const std::string& name() const;
  const std::shared_ptr<const nn::MetricImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const nn::MetricImpl> impl_;
};

namespace metrics {

/// The share of right answers: BinaryAccuracy, CategoricalAccuracy or SparseCategoricalAccuracy, by the shapes.
struct Accuracy : Metric {
  explicit Accuracy(std::string name = "accuracy");
};
struct BinaryAccuracy : Metric {
  explicit BinaryAccuracy(std::string name = "binary_accuracy", double threshold = 0.5);
};
struct CategoricalAccuracy : Metric {
  explicit CategoricalAccuracy(std::string name = "categorical_accuracy");
};
struct SparseCategoricalAccuracy : Metric {
  explicit SparseCategoricalAccuracy(std::string name = "sparse_categorical_accuracy");
};
struct MeanSquaredError : Metric {
  explicit MeanSquaredError(std::string name = "mean_squared_error");
};
struct MeanAbsoluteError : Metric {
  explicit MeanAbsoluteError(std::string name = "mean_absolute_error");
};

}  // namespace metrics
// The errors have losses of the same names: write "mse" or metrics::MeanSquaredError().
using metrics::Accuracy, metrics::BinaryAccuracy, metrics::CategoricalAccuracy, metrics::SparseCategoricalAccuracy;

/// Metrics of a model with one output, "accuracy" or {"accuracy", "mse"}; of several outputs, MetricList::each_output({{"accuracy"}, {"mse"}}).
struct MetricList {
  MetricList() = default;
  MetricList(std::initializer_list<Metric> metrics) : by_output{std::vector<Metric>(metrics)} {}
  MetricList(Metric metric) : by_output{{std::move(metric)}} {}
  MetricList(const char* name) : MetricList(Metric(name)) {}
  MetricList(const std::string& name) : MetricList(Metric(name)) {}
  static MetricList each_output(std::vector<std::vector<Metric>> metrics) {
    MetricList all;
    all.by_output = std::move(metrics);
    return all;
  }
  std::vector<std::vector<Metric>> by_output;
};

}  // namespace millpond
