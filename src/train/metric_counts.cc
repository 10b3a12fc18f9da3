#include "train/metric_counts.h"

#include <algorithm>

#include "base/format.h"

namespace millpond::train {

std::vector<runtime::Variable*> MetricCounts::of(const std::string& name, const nn::CountingMetric& metric) {
  auto it = std::ranges::find(entries_, name, &Entry::name);
  if (it == entries_.end()) {
    Entry e{name, {}};
    for (const nn::CountingMetric::Count& c : metric.counts())
      e.variables.push_back(std::make_unique<runtime::Variable>(format("metrics/{}/{}", name, c.name), c.type));
    it = entries_.insert(it, std::move(e));
  }
  std::vector<runtime::Variable*> variables;
  for (const auto& v : it->variables) variables.push_back(v.get());
  return variables;
}

std::vector<runtime::Variable*> MetricCounts::all() const {
  std::vector<runtime::Variable*> variables;
  for (const Entry& e : entries_)
    for (const auto& v : e.variables) variables.push_back(v.get());
  return variables;
}

void MetricCounts::place() { runtime::place(all(), "metrics"); }

}  // namespace millpond::train
