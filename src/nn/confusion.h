// What AUC, Precision and Recall count: answers above a threshold, right and wrong. Labels are 0 or not; predictions
// lie in [0, 1].
#pragma once
#include <optional>

#include "nn/loss.h"
#include "nn/metric.h"

namespace millpond::nn {

struct Confusion {
  graph::Value true_positives, false_positives;  // int64, one for each threshold
  graph::Value positives, negatives;             // int64[1]: all labels
};

/// Of one batch: prediction * scale > limit, for each limit. Labels and predictions are taken as one long list, as in
/// Keras. Throws Error(kShape) when there are not as many of the ones as of the others.
Confusion confusion(graph::Builder& b, const std::string& metric, graph::Value y, graph::Value prediction,
                    const std::vector<double>& limits, double scale = 1);

inline constexpr double kThreshold = 0.5;
/// Options of a metric that counts at one threshold.
inline void threshold_options(Describer& d, std::optional<double>& threshold) {
  d.option("thresholds", threshold, between(0, 1));
  d.none({"top_k", "class_id"});
}

/// a / b, and 0 where b is 0.
inline double share(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace millpond::nn
