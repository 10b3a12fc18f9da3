// What a Keras JSON says about compile: Keras writes it into to_json() of a compiled model.
#pragma once
#include <optional>
#include <string>

#include "millpond/losses.h"
#include "millpond/optimizers.h"

namespace millpond::cli {

struct CompileConfig {
  std::optional<Optimizer> optimizer;  // with all of its settings
  LossList losses;                     // one, or one for each output, by position or by name; empty: none is named
  LossWeights loss_weights;
};

/// Throws Error(kUnsupported) naming a loss that is not here, or the optimizer's setting that is not here (use_ema, amsgrad, a schedule of the
/// rate, ...): to leave it out would train something else and plan other slots. `with_optimizer` false: it is not
/// looked at.
CompileConfig compile_config(const std::string& json, bool with_optimizer);

}  // namespace millpond::cli
