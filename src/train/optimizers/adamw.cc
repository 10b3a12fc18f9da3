#include "train/optimizers/adam.h"

namespace millpond {

static void settings(const train::Settings& s, AdamWOptions& o) { train::adam_settings(s, o); }
static void formula(ops::Formula& f, const AdamWOptions& o) { train::adam_formula(f, o); }

AdamW::AdamW(double learning_rate, AdamWOptions o) : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::adamw{"AdamW", train::read_optimizer<AdamW, AdamWOptions>};

}  // namespace millpond
