#include "nn/loss.h"
#include "base/format.h"
#include "eager/call.h"
#include "eager/range.h"
#include "millpond/losses.h"
#include "millpond/ops.h"

namespace millpond {

EagerTensor Loss::operator()(const EagerTensor& labels, const EagerTensor& prediction) const {
  if (!impl_) throw Error(Code::kUsage, "an empty loss is called");
  eager::Ref y = eager::need(labels, "a loss");
  const eager::Seen p = eager::seen(eager::need(prediction, "a loss"));
  std::shared_ptr<const nn::LossImpl> loss = impl_;
  if (auto chosen = impl_->resolve(y->type.shape, p.type.shape)) loss = chosen;
  graph::TensorType wide = p.type;
  if (is_half(wide.dtype)) wide.dtype = DType::kFloat32;
  const nn::Labels want = loss->labels(wide);
  if (y->type.dtype != want.dtype) y = ops::cast(labels, want.dtype).impl();
  if (want.classes > 0)
    eager::expect_range(*y, 0, want.classes, [&](int64_t value) {
      return Error(Code::kValue, format("{}: the label {} does not lie in [0, {})", loss->name, value, want.classes))
          .hint(format("predictions are {}: one of {} classes", p.type.shape, want.classes));
    });
  eager::Context& c = eager::Context::get();
  std::shared_ptr<eager::Function> f;
  {
    const std::lock_guard lock(c.mutex);
    graph::Key key;
    key.add(uint64_t(reinterpret_cast<uintptr_t>(impl_.get())));
    key.add(uint64_t(p.by) * 2 + (p.mask != nullptr));
    key.add(y->type);
    key.add(p.input->type);
    if (p.mask) key.add(p.mask->type);
    f = eager::kept_function(c, key, impl_, [&](graph::Builder& b) {
      const graph::Value label = b.input("y", y->type), in = b.input("p", p.input->type);
      const graph::Value mask = p.mask ? b.input("mask", p.mask->type) : graph::Value{};
      b.graph().outputs.push_back({"out0", nn::mean_loss(b, *loss, label, p.prediction(b, in), mask)});
    });
  }
  std::vector<eager::Ref> operands{y, p.input};
  if (p.mask) operands.push_back(p.mask);
  return eager::outside(std::move(eager::call(f, operands, true)[0]));
}

}  // namespace millpond
