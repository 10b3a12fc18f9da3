#include "millpond/layers/merging.h"

#include "base/format.h"
#include "nn/classes.h"
#include "ops/binary.h"
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

struct AddImpl final : LayerImpl {
  bool keeps_mask() const override { return true; }
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
    return ops::concatenate(c.builder(), std::vector<Value>(x.begin(), x.end()), a);
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
