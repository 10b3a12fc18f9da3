#include "millpond/layers/reshaping.h"

#include "base/format.h"
#include "nn/layer.h"
#include "ops/pad.h"
#include "ops/reshape.h"

namespace millpond {
namespace nn {
namespace {

struct FlattenImpl final : LayerImpl {
  Value call(CallContext& c, std::span<const Value> x) override {
    const Shape& s = x[0].shape();
    return ops::reshape(c.builder(), x[0], {s[0], s.slice(1, s.rank()).size()});
  }
};

struct ReshapeImpl final : LayerImpl {
  std::vector<int64_t> target;
  explicit ReshapeImpl(std::vector<int64_t> t) : target(std::move(t)) {}
  Value call(CallContext& c, std::span<const Value> x) override {
    const Shape& s = x[0].shape();
    const int64_t size = s.slice(1, s.rank()).size();
    std::vector<int64_t> dims{s[0]};
    int64_t known = 1;
    for (const int64_t d : target) known *= d < 0 ? 1 : d;
    for (const int64_t d : target) dims.push_back(d < 0 ? (known ? size / known : 0) : d);
    const Shape shape(dims);
    if (shape.slice(1, shape.rank()).size() != size)
      throw Error(Code::kShape, format("Reshape \"{}\": a sample of {} has {} values, which do not fill [{}]", name, s.slice(1, s.rank()), size, fmt::join(target, ", ")));
    return ops::reshape(c.builder(), x[0], shape);
  }
};

struct ZeroPadding2DImpl final : LayerImpl {
  int64_t top, bottom, left, right;
  ZeroPadding2DImpl(int64_t t, int64_t b, int64_t l, int64_t r) : top(t), bottom(b), left(l), right(r) {}
  Value call(CallContext& c, std::span<const Value> x) override {
    expect_rank(*this, x[0].type(), 3, "images [height, width, channels]");
    return ops::pad(c.builder(), x[0], {0, top, left, 0}, {0, bottom, right, 0});
  }
};

}  // namespace
}  // namespace nn

Flatten::Flatten(std::string name) : Layer(nn::make_layer<nn::FlattenImpl>("Flatten", std::move(name))) {}

Reshape::Reshape(std::vector<int64_t> target_shape, std::string name) : Layer(nullptr) {
  int open = 0;
  for (const int64_t d : target_shape) {
    open += d == -1;
    if (d < -1) throw Error(Code::kUsage, format("Reshape: a dimension is {}, but may only be positive, 0 or -1", d));
  }
  if (open > 1) throw Error(Code::kUsage, "Reshape: only one dimension may be -1");
  impl_ = nn::make_layer<nn::ReshapeImpl>("Reshape", std::move(name), std::move(target_shape));
}

ZeroPadding2D::ZeroPadding2D(Size2D padding, std::string name) : ZeroPadding2D(padding.height, padding.height, padding.width, padding.width, std::move(name)) {}
ZeroPadding2D::ZeroPadding2D(int64_t top, int64_t bottom, int64_t left, int64_t right, std::string name) : Layer(nullptr) {
  for (const int64_t n : {top, bottom, left, right})
    if (n < 0) throw Error(Code::kUsage, format("ZeroPadding2D: padding is {}, but may not be negative", n));
  impl_ = nn::make_layer<nn::ZeroPadding2DImpl>("ZeroPadding2D", std::move(name), top, bottom, left, right);
}

}  // namespace millpond
