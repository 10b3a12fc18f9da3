// trace: what a model computes for one batch size, as a graph: forward; forward and loss; or a whole training step.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"
#include "millpond/model.h"
#include "nn/network.h"
#include "passes/passes.h"
#include "train/metric_counts.h"
#include "train/optimizer.h"

namespace millpond::train {

enum class Kind : uint8_t { kTrain, kEvaluate, kPredict };
std::string_view to_string(Kind kind);

/// What compile was given, one entry for each output of the model.
struct Compiled {
  Optimizer optimizer;
  std::vector<Loss> losses;
  std::vector<std::vector<Metric>> metrics;
  std::vector<double> loss_weights;
};

/// One array that a step reads: a graph input.
struct Feed {
  std::string name;  // "x0", "y0"
  graph::TensorType type;
  bool label = false;
  int64_t limit = 0;          // not 0: integers that must lie in [0, limit)
  std::string limit_of = "";  // whose: the layer or output that has so many
};

/// One number that is told of a run. As a rule a step gives it: a graph output "<name>", a float32 scalar, whose mean
/// over many batches is sum(value * weight) / (samples * per_sample). A counting metric's has no output: it is a
/// function of what steps have counted.
struct Scalar {
  std::string name;
  double weight = 1;      // loss: the batch, since a batch's own value is a mean; metrics: 1, a sum
  double per_sample = 1;  // values that a metric sums up for each sample
  std::shared_ptr<const nn::CountingMetric> metric = nullptr;
  std::vector<runtime::Variable*> counts = {};  // borrowed from the workspace's MetricCounts
};

struct Traced {
  graph::Graph graph;
  std::vector<Feed> feeds;              // x first, then y
  std::vector<Scalar> scalars;          // "loss" first
  std::vector<std::string> outputs;     // of predict: "out0", ...
  std::vector<passes::Record> records;  // of the passes that ran before gradients were taken
};

/// `labels`: shapes of one sample of each y; none for predicting. `counter` is what a layer's randomness counts by,
/// `counts` where metrics count; both must outlive the graph. `passes`: those that the backend can have
/// (runtime::Options::offered_passes); some must run before gradients are taken.
Traced trace(const nn::Network& net, const Compiled* compiled, Kind kind, int64_t batch, std::span<const Shape> labels,
             runtime::Variable* counter, MetricCounts& counts, const passes::Options& passes);

/// Shapes of y that the losses would want: for a plan without data.
std::vector<Shape> expected_labels(const nn::Network& net, const Compiled& compiled);

}  // namespace millpond::train
