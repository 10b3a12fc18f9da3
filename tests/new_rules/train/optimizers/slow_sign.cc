#include "train/optimizers/kind.h"

namespace millpond {

static void settings(const train::Settings& s, SlowSignOptions& o) {
  s.number("slower", o.slower, 0, 1);
  s.common(o);
}

static void formula(ops::Formula& f, const SlowSignOptions& o) {
  const ops::Term w = f.weight(), speed = f.number("speed", 1);
  f.becomes(speed, speed * o.slower);
  f.becomes(w, w - f.learning_rate() * speed * sign(f.gradient()));
}

SlowSign::SlowSign(double learning_rate, SlowSignOptions o)
    : Optimizer(train::make_optimizer(learning_rate, std::move(o))) {}
constinit const train::OptimizerKind train::kinds::slow_sign{"SlowSign",
                                                             train::read_optimizer<SlowSign, SlowSignOptions>};

}  // namespace millpond
