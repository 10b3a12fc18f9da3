#include "base/format.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/reduce.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {
namespace {

struct ErrorMetric final : MeanMetric {
  bool squared;
  explicit ErrorMetric(bool s) : squared(s) {}
  std::string_view type() const override { return squared ? "MeanSquaredError" : "MeanAbsoluteError"; }
  Value values(Builder& b, Value y, Value p) const override {
    y = ops::cast(b, y, p.dtype());
    match_ranks(b, y, p);
    if (y.shape() != p.shape())
      throw Error(Code::kShape, format("{}: labels are {}, but predictions are {}", name, y.shape(), p.shape()));
    const Value d = ops::subtract(b, y, p);
    return ops::mean(b, squared ? ops::square(b, d) : ops::abs(b, d), {-1});
  }
};

template <bool squared>
std::shared_ptr<MetricImpl> made_error() {
  return std::make_shared<ErrorMetric>(squared);
}

}  // namespace

constinit const MetricFile metric_files::errors{{{{"mse", "mean_squared_error", "MSE"}, made_error<true>},
                                                 {{"mae", "mean_absolute_error", "MAE"}, made_error<false>}}};

}  // namespace nn

metrics::MeanSquaredError::MeanSquaredError(std::string name)
    : Metric(nn::make_metric<nn::ErrorMetric>(std::move(name), true)) {}
metrics::MeanAbsoluteError::MeanAbsoluteError(std::string name)
    : Metric(nn::make_metric<nn::ErrorMetric>(std::move(name), false)) {}

}  // namespace millpond
