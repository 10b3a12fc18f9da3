#include "ops/dropout.h"

#include "base/seed.h"
#include "millpond/layers/regularization.h"
#include "nn/classes.h"

namespace millpond {
namespace nn {
namespace {

struct DropoutImpl final : LayerImpl {
  double rate;
  std::optional<uint64_t> seed;
  uint64_t salt = 0;
  explicit DropoutImpl(double r = 0, std::optional<uint64_t> s = {}) : rate(r), seed(s) {}
  void options(Describer& d) override {
    d.required("rate", rate, between(0, 1));
    d.option("seed", seed);
    d.none({"noise_shape"});
  }
  bool keeps_mask() const override { return true; }
  void settle() override { salt = seed ? *seed : draw_seed(); }
  Values call(CallContext& c, std::span<const Value> x) override {
    if (!c.training() || rate == 0) return x[0];
    return ops::dropout(c.builder(), as_float(c, x[0]), c.counter(), rate, salt);
  }
};

}  // namespace

void declare_regularization(LayerClasses& all) { all.add<DropoutImpl>("Dropout"); }
}  // namespace nn

Dropout::Dropout(double rate, DropoutOptions options)
    : Layer(nn::make_layer<nn::DropoutImpl>("Dropout", options.name, rate, options.seed)) {}

}  // namespace millpond
