#include "train/optimizers/adam.h"

namespace millpond {

static void settings(const train::Settings& s, AdamOptions& o) { train::adam_settings(s, o); }

static void formula(ops::Formula& f, const AdamOptions& o) { train::adam_formula(f, o); }

Adam::Adam(double learning_rate, AdamOptions o) : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::adam{"Adam", train::read_optimizer<Adam, AdamOptions>};

}  // namespace millpond
