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
  Bytes memory_target = {};  // 0: none
};

/// One array that a step reads: a graph input.
struct Feed {
  std::string name;  // "x0", "y0"
  graph::TensorType type;
  bool label = false;
  int64_t limit = 0;          // not 0: integers that must lie in [0, limit)
  std::string limit_of = "";  // whose: the layer or output that has so many
};

/// The shapes of one sample of each input and of each label (none for predicting). With the batch they are all that
/// programs of one kind differ by: dtypes are those of the model's inputs and those that the losses want, whatever the
/// data have, and a model that is compiled anew drops its programs.
struct SampleShapes {
  std::vector<Shape> x, y;
  bool operator==(const SampleShapes&) const = default;
};

/// One number that is told of a run. As a rule a step gives it: a graph output "<name>", a float32 scalar, whose mean
/// over many batches is sum(value * weight) / (samples * per_sample). A counting metric's has no output: it is a
/// function of what steps have counted.
struct Scalar {
  std::string name;
  double weight = 1;      // loss: the batch, since a batch's own value is a mean; metrics: 1, a sum
  double per_sample = 1;  // values that a metric sums up for each sample
  bool counted = false;   // what sums are divided by is summed up too: the output "<name>/count"
  std::shared_ptr<const nn::CountingMetric> metric = nullptr;
  std::vector<runtime::Variable*> counts = {};  // borrowed from the workspace's MetricCounts
};

struct Traced {
  graph::Graph graph;
  std::vector<Feed> feeds;                  // x first, then y
  std::vector<Scalar> scalars;              // "loss" first
  std::vector<std::string> outputs;         // of predict: "out0", ...
  std::string samples = {};                 // of a model that leaves dimensions to its data: "[100] [20, 3]"
  std::vector<passes::Record> records;      // of the passes that ran before gradients were taken
  std::optional<Bytes> memory_target = {};  // what weights, slots and counts leave of the compiled one
};

/// `counter` is what a layer's randomness counts by,
/// `counts` where metrics count; both must outlive the graph. `passes`: those that the backend can have
/// (runtime::Options::offered_passes); some must run before gradients are taken.
Traced trace(const nn::Network& net, const Compiled* compiled, Kind kind, int64_t batch, const SampleShapes& samples,
             runtime::Variable* counter, MetricCounts& counts, const passes::Options& passes);

/// "[100] [20, 3]" for a model that leaves dimensions to its data; otherwise nothing.
std::string told_samples(const nn::Network& net, const SampleShapes& samples);

/// For a plan without data: inputs of the shapes that the model wants, which `given` says where the model leaves them to
/// its data, and the labels that the losses would want (`compiled` is null: none). Throws Error(kUsage) naming the input
/// of which nobody says how large it is.
SampleShapes samples_to_plan(const nn::Network& net, const Compiled* compiled, std::span<const Shape> given);

}  // namespace millpond::train
