// MetricImpl: a metric as a composition of operators, computed inside the step. There are two kinds:
//   MeanMetric      the mean of one value for each sample (and position): a step gives their sum, sums are added up on the host, in double
//   CountingMetric  a function of what was counted over the epoch: counts are variables that a step updates; the function is computed
//                   on the host when somebody reads it, once an epoch as a rule
// Memory: nothing for a mean; for a counting metric its counts, accounts metrics/<name>/<count>, once for each workspace of a model.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "millpond/metrics.h"
#include "millpond/tensor.h"
#include "nn/describe.h"
#include "nn/options.h"

namespace millpond::nn {

struct MetricImpl : Described {
  std::string name;
  /// Keras's class name; empty: none of its classes means the same.
  virtual std::string_view type() const { return {}; }
  /// What all metrics have, then this one's own.
  void describe(Describer& d) final;
  virtual void options(Describer&) {}
  mutable std::shared_ptr<void> alone = nullptr;  // what update_state has counted (eager/metric.cc)
};

struct MeanMetric : MetricImpl {
  virtual graph::Value values(graph::Builder& b, graph::Value y, graph::Value prediction) const = 0;
};

struct CountingMetric : MetricImpl {
  struct Count {
    std::string name;
    graph::TensorType type;  // int64 for what is counted one by one: float32 stops at 2^24
  };
  /// What is kept from batch to batch; zeros when an epoch begins.
  virtual std::vector<Count> counts() const = 0;
  /// The counts after a batch, from those before.
  virtual std::vector<graph::Value> update(graph::Builder& b, std::span<const graph::Value> before, graph::Value y,
                                           graph::Value prediction) const = 0;
  virtual double result(std::span<const Tensor> counts) const = 0;
};

/// A metric of an output that has a mask, as Keras's means take it: the sum over what counts, and the number of that, both
/// in units of the values that a sample has.
struct Counted {
  graph::Value sum, count;
  double unit = 1;
};
Counted counted(graph::Builder& b, graph::Value values, graph::Value mask, const std::string& metric);

template <class T, class... Args>
std::shared_ptr<const MetricImpl> make_metric(std::string name, Args&&... args) {
  auto impl = std::make_shared<T>(std::forward<Args>(args)...);
  impl->name = std::move(name);
  check_options(*impl, impl->name);
  return impl;
}

template <class T>
std::shared_ptr<MetricImpl> made_metric() {
  return std::make_shared<T>();
}

/// A metric that is found by its names, "mse" and "mean_squared_error", and by Keras's class; it is made with the
/// defaults of its options.
struct MetricKind {
  std::string_view names[3];  // fewer: the rest is empty
  std::shared_ptr<MetricImpl> (*make)();
};
struct MetricFile {
  MetricKind metrics[4];  // fewer: the rest has no name
};

/// The entry of each file of nn/metrics, made from the files' names.
namespace metric_files {
#define MP_METRIC(name) extern const MetricFile name;
#include "nn/metrics/list.inc"
#undef MP_METRIC
}  // namespace metric_files

/// All of them, in the order of their files' names.
std::span<const MetricFile* const> metric_table();

}  // namespace millpond::nn
