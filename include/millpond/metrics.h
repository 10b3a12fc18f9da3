// Metrics: what is told beside the loss. Sums and counts are made inside the step; a metric begins anew with each
// epoch. Memory: one number for a mean (accuracy, errors); counts for AUC, Precision and Recall, accounts
// metrics/<name>/<count>.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/eager.h"

namespace millpond {

namespace nn {
struct MetricImpl;
}

class Metric {
 public:
  /// "accuracy" (binary, categorical or sparse, by the shapes), "binary_accuracy", "auc", "mse", "mae", ...; shown
  /// under this very name. Throws Error(kUsage) naming the known ones.
  Metric(std::string_view name);
  Metric(const char* name) : Metric(std::string_view(name)) {}
  Metric(const std::string& name) : Metric(std::string_view(name)) {}
  explicit Metric(std::shared_ptr<const nn::MetricImpl> impl) : impl_(std::move(impl)) {}

  const std::string& name() const;
  /// Keras's class name: "AUC"; empty where none of its classes means the same ("accuracy", and metrics of your own).
  std::string_view type() const;
  /// The options as Keras's get_config() gives them, as JSON; and a metric of them. Throws Error(kUnsupported) naming a
  /// class or option that is not here and the nearest one that is, Error(kFormat) or Error(kUsage) for a value that is
  /// not allowed.
  std::string get_config() const;
  static Metric from_config(std::string_view type, std::string_view config);

  /// By itself, in a loop of one's own; what fit counts is another matter. Copies count together. The means are summed up
  /// in double; the counts of AUC and the like lie in the account metrics/<name>.
  void update_state(const EagerTensor& y, const EagerTensor& prediction);
  /// Of all updates since reset_state; 0 of none.
  double result() const;
  void reset_state();
  /// Updates, and says the result.
  double operator()(const EagerTensor& y, const EagerTensor& prediction) {
    update_state(y, prediction);
    return result();
  }

  const std::shared_ptr<const nn::MetricImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const nn::MetricImpl> impl_;
};

struct AUCOptions {
  enum class Curve : uint8_t { kROC, kPR };  // true over false positives; precision over recall
  enum class Summation : uint8_t { kInterpolation, kMinoring, kMajoring };
  int64_t num_thresholds = 200;  // evenly spaced
  Curve curve = Curve::kROC;
  Summation summation = Summation::kInterpolation;
  bool from_logits = false;
  std::string name = "auc";
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
/// The area under the curve of right and wrong answers over all thresholds. Counts two int64 for each threshold.
struct AUC : Metric {
  explicit AUC(AUCOptions options = {});
};
/// Of all that was called positive, the share that is; 0 when nothing was. Counts two int64.
struct Precision : Metric {
  explicit Precision(std::string name = "precision", double threshold = 0.5);
};
/// Of all that is positive, the share that was called so; 0 when nothing is. Counts two int64.
struct Recall : Metric {
  explicit Recall(std::string name = "recall", double threshold = 0.5);
};

/// The mean of what it is told in a loop of one's own, of all elements: losses.update_state(loss). Copies count together.
class Mean {
 public:
  explicit Mean(std::string name = "mean");
  const std::string& name() const;
  void update_state(const EagerTensor& values);
  /// Of all updates since reset_state; 0 of none.
  double result() const;
  void reset_state();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace metrics
// The errors have losses of the same names: write "mse" or metrics::MeanSquaredError().
using metrics::Accuracy, metrics::BinaryAccuracy, metrics::CategoricalAccuracy, metrics::SparseCategoricalAccuracy;
using metrics::AUC, metrics::Precision, metrics::Recall;

/// Metrics of a model with one output, "accuracy" or {"accuracy", "mse"}; of several outputs by their names, in which
/// outputs may be left out, {{"kind", {"accuracy", "auc"}}, {"size", "mae"}}, or in their order,
/// MetricList::each_output({{"accuracy", "auc"}, {"mae"}}).
struct MetricList {
  /// The metrics of one output.
  struct Named {
    std::string output;
    std::vector<Metric> metrics;
    Named(std::string o, std::vector<Metric> many) : output(std::move(o)), metrics(std::move(many)) {}
    Named(std::string o, Metric one) : output(std::move(o)), metrics{std::move(one)} {}
    Named(std::string o, const char* one) : Named(std::move(o), Metric(one)) {}
  };
  MetricList() = default;
  MetricList(std::initializer_list<Named> by_name) {
    for (const Named& n : by_name) by_output.push_back(n.metrics), names.push_back(n.output);
  }
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
  std::vector<std::string> names;  // of the outputs of by_output; none: by position
};

}  // namespace millpond
