// What a Keras JSON says about compile: Keras writes it into to_json() of a compiled model.
#pragma once
#include <optional>
#include <string>

#include "millpond/losses.h"
#include "millpond/metrics.h"
#include "millpond/optimizers.h"

namespace millpond::cli {

struct CompileConfig {
  std::optional<Optimizer> optimizer;  // with all of its settings
  LossList losses;                     // one, or one for each output, by position or by name; empty: none is named
  LossWeights loss_weights;
  std::optional<MetricList> metrics;  // in the order of outputs or by their names; none: the file says nothing
};

/// What a Keras JSON says of how its model was compiled. Throws Error(kUnsupported) naming a loss or metric that is not
/// here, or the optimizer's setting that is not here (use_ema, amsgrad, a schedule of the rate, ...): to leave it out
/// would train something else and plan other slots. `with_optimizer` false, `metrics_of` (the model's outputs) 0: the
/// optimizer, the metrics are not looked at.
CompileConfig compile_config(const std::string& json, bool with_optimizer, size_t metrics_of);

}  // namespace millpond::cli
