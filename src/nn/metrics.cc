#include "millpond/metrics.h"

#include <algorithm>

#include "base/format.h"
#include "millpond/error.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "nn/options.h"
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

void MetricImpl::describe(Describer& d) {
  d.option("name", name);
  d.without_effect("dtype", "\"float32\"");  // sums are made in double
  options(d);
}

namespace {

template <class Fits>
const MetricKind* metric_kind(Fits fits) {
  for (const MetricFile* file : metric_table())
    for (const MetricKind& kind : file->metrics)
      if (kind.make && fits(kind)) return &kind;
  return nullptr;
}

std::shared_ptr<const MetricImpl> named(std::shared_ptr<MetricImpl> impl, std::string name) {
  impl->name = std::move(name);
  return impl;
}

}  // namespace
}  // namespace nn

const std::string& Metric::name() const { return impl_->name; }

Metric::Metric(std::string_view name) {
  const nn::MetricKind* found = nn::metric_kind([&](const nn::MetricKind& kind) {
    return std::ranges::find(kind.names, name) != std::end(kind.names) || kind.make()->type() == name;
  });
  if (!found || name.empty()) {
    std::vector<std::string> known;
    nn::metric_kind([&](const nn::MetricKind& kind) { return known.emplace_back(kind.names[0]), false; });
    throw Error(Code::kUsage, format("metric \"{}\" is not known", name)).hint(nn::meant(name, known, true));
  }
  impl_ = nn::named(found->make(), std::string(name));
}

std::string_view Metric::type() const { return impl_->type(); }

std::string Metric::get_config() const {
  if (impl_->type().empty())
    throw Error(Code::kUnsupported, format("the metric \"{}\" has no class of Keras's, and so no options", name()));
  return nn::to_text(nn::write_options(*impl_));
}

Metric Metric::from_config(std::string_view type, std::string_view config) {
  const nn::MetricKind* found =
      nn::metric_kind([&](const nn::MetricKind& kind) { return !type.empty() && kind.make()->type() == type; });
  if (!found) {
    std::vector<std::string> known;
    nn::metric_kind([&](const nn::MetricKind& kind) {
      if (const std::string_view t = kind.make()->type(); !t.empty()) known.emplace_back(t);
      return false;
    });
    throw Error(Code::kUnsupported, format("metric {} is not here yet", type)).hint(nn::meant(type, known));
  }
  std::shared_ptr<nn::MetricImpl> impl = found->make();
  impl->name = found->names[0];
  nn::read_options(*impl, nn::from_text(config, "a metric's options"), std::string(type));
  return Metric(std::move(impl));
}

}  // namespace millpond
