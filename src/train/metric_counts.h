// MetricCounts: what the counting metrics of one workspace (train/use.h) count. All of its programs, for training and
// evaluating, full batches and the last one, share them; Means begins them anew and puts back what an outer run had
// counted. Memory: the counts, account metrics/<name>/<count>, in one segment.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/metric.h"
#include "runtime/variable.h"

namespace millpond::train {

class MetricCounts {
 public:
  /// The counts of the metric that is shown under this name; made when they are first asked for.
  std::vector<runtime::Variable*> of(const std::string& name, const nn::CountingMetric& metric);
  std::vector<runtime::Variable*> all() const;
  /// Gives those that have none yet their places.
  void place();
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::string name;
    std::vector<std::unique_ptr<runtime::Variable>> variables;
  };
  std::vector<Entry> entries_;
};

}  // namespace millpond::train
