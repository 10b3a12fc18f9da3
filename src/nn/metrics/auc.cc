#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "nn/confusion.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {
namespace {

struct AUCImpl final : CountingMetric {
  explicit AUCImpl(AUCOptions o = {}) : options_(std::move(o)) {}
  std::string_view type() const override { return "AUC"; }
  void options(Describer& d) override {
    using Curve = AUCOptions::Curve;
    using Summation = AUCOptions::Summation;
    d.option("num_thresholds", options_.num_thresholds, at_least(2));
    d.choice<Curve>("curve", options_.curve, {{"ROC", Curve::kROC}, {"PR", Curve::kPR}});
    d.choice<Summation>("summation_method", options_.summation,
                        {{"interpolation", Summation::kInterpolation},
                         {"minoring", Summation::kMinoring},
                         {"majoring", Summation::kMajoring}});
    d.fixed("multi_label", "false");
    d.none({"num_labels", "label_weights"});
    d.option("from_logits", options_.from_logits);
  }

  std::vector<Count> counts() const override {
    const TensorType each{DType::kInt64, {options_.num_thresholds}}, one{DType::kInt64, {1}};
    return {{"true_positives", each}, {"false_positives", each}, {"positives", one}, {"negatives", one}};
  }

  std::vector<Value> update(Builder& b, std::span<const Value> before, Value y, Value p) const override {
    if (options_.from_logits) p = ops::sigmoid(b, p);
    // Evenly spaced thresholds i / (n - 1), compared as Keras compares them: p (n - 1) > i. The first lies below and
    // the last above everything that is a probability.
    std::vector<double> limits;
    for (int i = 0; i < options_.num_thresholds; ++i) limits.push_back(i == 0 ? -1 : i);
    const Confusion c = confusion(b, name, y, p, limits, options_.num_thresholds - 1);
    return {ops::add(b, before[0], c.true_positives), ops::add(b, before[1], c.false_positives),
            ops::add(b, before[2], c.positives), ops::add(b, before[3], c.negatives)};
  }

  double result(std::span<const Tensor> counts) const override {
    const double positives = counts[2].at(0), negatives = counts[3].at(0);
    const bool pr = options_.curve == AUCOptions::Curve::kPR;
    if (pr && options_.summation == AUCOptions::Summation::kInterpolation)
      return interpolated_pr(counts[0], counts[1], positives);
    double area = 0;
    for (int64_t i = 0; i + 1 < options_.num_thresholds; ++i) {
      double x[2], y[2];
      for (int k = 0; k < 2; ++k) {
        const double right = counts[0].at(i + k), wrong = counts[1].at(i + k), recall = share(right, positives);
        x[k] = pr ? recall : share(wrong, negatives);
        y[k] = pr ? share(right, right + wrong) : recall;
      }
      double height = (y[0] + y[1]) / 2;
      if (options_.summation == AUCOptions::Summation::kMinoring) height = std::min(y[0], y[1]);
      if (options_.summation == AUCOptions::Summation::kMajoring) height = std::max(y[0], y[1]);
      area += (x[0] - x[1]) * height;
    }
    return area;
  }

 private:
  AUCOptions options_;
  // Davis and Goadrich 2006: between two thresholds true positives grow in proportion to all that are called positive,
  // and precision follows from that; a straight line between two points of the curve would promise too much.
  double interpolated_pr(const Tensor& right, const Tensor& wrong, double positives) const {
    double area = 0;
    for (int64_t i = 0; i + 1 < options_.num_thresholds; ++i) {
      const double called = right.at(i) + wrong.at(i), called_next = right.at(i + 1) + wrong.at(i + 1);
      const double gained = right.at(i) - right.at(i + 1), slope = share(gained, std::max(0.0, called - called_next));
      const double intercept = right.at(i + 1) - slope * called_next;
      const double ratio = called > 0 && called_next > 0 ? called / called_next : 1;
      area += share(slope * (gained + intercept * std::log(ratio)), positives);
    }
    return area;
  }
};

}  // namespace

constinit const MetricFile metric_files::auc{{{{"auc"}, made_metric<AUCImpl>}}};

}  // namespace nn

metrics::AUC::AUC(AUCOptions o) : Metric(nn::make_metric<nn::AUCImpl>(o.name, o)) {}

}  // namespace millpond
