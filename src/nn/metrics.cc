#include "millpond/metrics.h"

#include <algorithm>

#include "base/format.h"
#include "millpond/error.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reduce.h"

namespace millpond {

namespace nn {
using graph::Builder;
using graph::Value;

Counted counted(Builder& b, Value values, Value mask, const std::string& metric) {
  Value weights = ops::cast(b, mask, values.dtype());
  match_ranks(b, values, weights);
  const int rank = weights.shape().rank();
  std::vector<int> inner;  // dimensions of a value that the mask does not have
  for (int i = rank; i < values.shape().rank(); ++i) inner.push_back(i);
  if (!inner.empty()) values = ops::mean(b, values, inner);
  if (values.shape() != weights.shape())
    throw Error(Code::kShape, format("metric \"{}\": its values are {}, but the mask of the output is {}", metric,
                                     values.shape(), mask.shape()))
        .hint("compile the model without it, or leave out mask_zero or Masking");
  const double each = double(weights.shape().size()) / double(std::max<int64_t>(1, weights.shape()[0]));
  return {ops::sum(b, ops::multiply(b, values, weights)), ops::sum(b, weights), each > 0 ? 1 / each : 0};
}

}  // namespace nn

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
