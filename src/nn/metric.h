// MetricImpl: a metric as a composition of operators: one value for each sample (and position), summed inside the step.
#pragma once
#include "graph/builder.h"
#include "millpond/metrics.h"

namespace millpond::nn {

struct MetricImpl {
  std::string name;
  virtual ~MetricImpl() = default;
  virtual graph::Value values(graph::Builder& b, graph::Value y, graph::Value prediction) const = 0;
};

}  // namespace millpond::nn
