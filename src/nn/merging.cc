#include "millpond/layers/merging.h"

#include "base/format.h"
#include "nn/classes.h"
#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/concatenate.h"
#include "ops/reshape.h"

namespace millpond {
namespace nn {
namespace {

void expect_several(const LayerImpl& layer, std::span<const Value> x) {
  if (x.size() < 2)
    throw Error(Code::kUsage,
                format("{} \"{}\" needs at least two tensors, but is called on {}", layer.type, layer.name, x.size()));
}

// Of a sum, as in Keras: what counts in any operand counts. Where one operand has no mask the result has none.
void mask_sum(CallContext& c, std::span<const Value> x, Value result) {
  Value any;
  for (const Value v : x) {
    const Value mask = c.mask_of(v);
    if (!mask) return;
    any = any ? ops::binary(c.builder(), ops::Function::k_bitwise_or, any, mask) : mask;
  }
  c.set_mask(result, any);
}

struct AddImpl final : LayerImpl {
  MaskOperators mask_operators(size_t i, size_t operands, bool) const override {  // or(or(mask 0, mask 1), mask 2)
    return {int(operands - std::max<size_t>(i, 1)), 0};
  }
  Values call(CallContext& c, std::span<const Value> x) override {
    expect_several(*this, x);
    Value sum = as_float(c, x[0]);
    for (const Value& next : x.subspan(1)) {
      Value y = as_float(c, next);
      const auto widen = [&](Value v, int rank) {  // as Keras: the batch stays in front, ones come behind it
        Shape s = v.shape();
        std::vector<int64_t> dims{s[0]};
        dims.resize(size_t(1 + rank - s.rank()), 1);
        dims.insert(dims.end(), s.begin() + 1, s.end());
        return ops::reshape(c.builder(), v, Shape(dims));
      };
      if (sum.shape().rank() < y.shape().rank()) sum = widen(sum, y.shape().rank());
      if (y.shape().rank() < sum.shape().rank()) y = widen(y, sum.shape().rank());
      sum = ops::add(c.builder(), sum, y);
    }
    mask_sum(c, x, sum);
    return sum;
  }
};

struct ConcatenateImpl final : LayerImpl {
  int axis;
  explicit ConcatenateImpl(int a = -1) : axis(a) {}
  void options(Describer& d) override { d.option("axis", axis); }
  Values call(CallContext& c, std::span<const Value> x) override {
    expect_several(*this, x);
    const int a = canonical_axis(*this, axis, x[0].shape().rank());
    if (a == 0) throw Error(Code::kUsage, format("Concatenate \"{}\": axis 0 is the batch", name));
    for (const Value& v : x) {
      bool fits = v.shape().rank() == x[0].shape().rank();
      for (int i = 0; fits && i < v.shape().rank(); ++i) fits = i == a || v.shape()[i] == x[0].shape()[i];
      if (!fits)
        throw Error(Code::kShape,
                    format("Concatenate \"{}\": samples of {} and {} differ elsewhere than along axis {}", name,
                           x[0].shape().slice(1, x[0].shape().rank()), v.shape().slice(1, v.shape().rank()), a));
    }
    const Value all = ops::concatenate(c.builder(), std::vector<Value>(x.begin(), x.end()), a);
    mask_all(c, x, all, a);
    return all;
  }

 private:
  // any(concatenate(or(expand_dims(mask), zeros_like(operand)), ones_like(operand without a mask)))
  MaskOperators mask_operators(size_t, size_t, bool masked) const override { return {4, masked ? 4 : 3}; }
  // As in Keras: where one operand has a mask, all of those that have none counts. Along the last axis what counts in any
  // operand counts; masks have every other axis too, and follow each other along it as their operands do.
  static void mask_all(CallContext& c, std::span<const Value> x, Value all, int axis) {
    Builder& b = c.builder();
    std::vector<Value> masks;
    bool any = false;
    for (const Value v : x) {
      const Shape steps = v.shape().slice(0, v.shape().rank() - 1);
      const Value mask = c.mask_of(v);
      if (mask && mask.shape() != steps) return;
      any |= bool(mask);
      masks.push_back(mask ? mask : ops::broadcast_to(b, b.scalar(DType::kBool, 1), steps));
    }
    if (!any) return;
    if (axis < all.shape().rank() - 1) return c.set_mask(all, ops::concatenate(b, masks, axis));
    Value either = masks[0];
    for (const Value m : std::span(masks).subspan(1)) either = ops::binary(b, ops::Function::k_bitwise_or, either, m);
    c.set_mask(all, either);
  }
};

}  // namespace

void declare_merging(LayerClasses& all) {
  all.add<AddImpl>("Add");
  all.add<ConcatenateImpl>("Concatenate");
}
}  // namespace nn

Add::Add(std::string name) : Layer(nn::make_layer<nn::AddImpl>("Add", std::move(name))) {}
Concatenate::Concatenate(int axis, std::string name)
    : Layer(nn::make_layer<nn::ConcatenateImpl>("Concatenate", std::move(name), axis)) {}

}  // namespace millpond
