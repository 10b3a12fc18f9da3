#include "ops/dropout.h"

#include "base/format.h"
#include "base/seed.h"
#include "millpond/layers/regularization.h"
#include "nn/layer.h"

namespace millpond {
namespace nn {
namespace {

struct DropoutImpl final : LayerImpl {
  double rate;
  uint64_t salt;
  DropoutImpl(double r, uint64_t s) : rate(r), salt(s) {}
  Value call(CallContext& c, std::span<const Value> x) override {
    if (!c.training() || rate == 0) return x[0];
    return ops::dropout(c.builder(), as_float(c, x[0]), c.counter(), rate, salt);
  }
};

}  // namespace
}  // namespace nn

Dropout::Dropout(double rate, DropoutOptions options) : Layer(nullptr) {
  if (!(rate >= 0 && rate <= 1)) throw Error(Code::kUsage, format("Dropout: rate is {}, but must lie between 0 and 1", rate));
  impl_ = nn::make_layer<nn::DropoutImpl>("Dropout", options.name, rate, options.seed ? *options.seed : draw_seed());
}

}  // namespace millpond
