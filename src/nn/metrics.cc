#include "millpond/metrics.h"

#include "base/format.h"
#include "millpond/error.h"
#include "nn/metric.h"

namespace millpond {

const std::string& Metric::name() const { return impl_->name; }

Metric::Metric(std::string_view name) {
  std::string known;
  for (const nn::MetricFile* file : nn::metric_table())
    for (const nn::MetricKind& kind : file->metrics) {
      if (kind.name.empty()) continue;
      if (name == kind.name || name == kind.other || name == kind.third) {
        impl_ = kind.make(std::string(name)).impl();
        return;
      }
      known += (known.empty() ? "" : ", ") + std::string(kind.name);
    }
  throw Error(Code::kUsage, format("metric \"{}\" is not known", name)).hint("known are " + known);
}

}  // namespace millpond
