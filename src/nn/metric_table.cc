// Alone in its file: tests/new_rules makes it anew with one metric more.
#include "nn/metric.h"

namespace millpond::nn {

std::span<const MetricFile* const> metric_table() {
  static constexpr const MetricFile* kAll[] = {
#define MP_METRIC(file) &metric_files::file,
#include "nn/metrics/list.inc"
#undef MP_METRIC
  };
  return kAll;
}

}  // namespace millpond::nn
