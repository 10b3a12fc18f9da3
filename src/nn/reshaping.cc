#include "millpond/layers/reshaping.h"

#include <algorithm>

#include "base/format.h"
#include "nn/classes.h"
#include "ops/pad.h"
#include "ops/reshape.h"

namespace millpond {
namespace nn {
namespace {

struct FlattenImpl final : LayerImpl {
  void options(Describer& d) override { d.fixed("data_format", "\"channels_last\""); }
  Values call(CallContext& c, std::span<const Value> x) override {
    const Shape& s = x[0].shape();
    return ops::reshape(c.builder(), x[0], {s[0], s.slice(1, s.rank()).size()});
  }
};

struct ReshapeImpl final : LayerImpl {
  std::vector<int64_t> target;
  explicit ReshapeImpl(std::vector<int64_t> t = {}) : target(std::move(t)) {}
  void options(Describer& d) override { d.required("target_shape", target, at_least(-1)); }
  void settle() override {
    if (std::ranges::count(target, -1) > 1)
      throw Error(Code::kUsage,
                  format("{}: target_shape is [{}], but only one dimension may be -1", who(), fmt::join(target, ", ")));
  }
  Values call(CallContext& c, std::span<const Value> x) override {
    const Shape& s = x[0].shape();
    const int64_t size = s.slice(1, s.rank()).size();
    std::vector<int64_t> dims{s[0]};
    int64_t known = 1;
    for (const int64_t d : target) known *= d < 0 ? 1 : d;
    for (const int64_t d : target) dims.push_back(d < 0 ? (known ? size / known : 0) : d);
    const Shape shape(dims);
    if (shape.slice(1, shape.rank()).size() != size)
      throw Error(Code::kShape, format("Reshape \"{}\": a sample of {} has {} values, which do not fill [{}]", name,
                                       s.slice(1, s.rank()), size, fmt::join(target, ", ")));
    return ops::reshape(c.builder(), x[0], shape);
  }
};

struct ZeroPadding2DImpl final : LayerImpl {
  std::array<int64_t, 4> sides;  // above, below, left, right
  explicit ZeroPadding2DImpl(std::array<int64_t, 4> s = {1, 1, 1, 1}) : sides(s) {}
  void options(Describer& d) override {
    d.option("padding", sides, at_least(0));
    d.fixed("data_format", "\"channels_last\"");
  }
  Values call(CallContext& c, std::span<const Value> x) override {
    expect_rank(*this, x[0].type(), 3, "images [height, width, channels]");
    return ops::pad(c.builder(), x[0], {0, sides[0], sides[2], 0}, {0, sides[1], sides[3], 0});
  }
};

}  // namespace

void declare_reshaping(LayerClasses& all) {
  all.add<FlattenImpl>("Flatten");
  all.add<ReshapeImpl>("Reshape");
  all.add<ZeroPadding2DImpl>("ZeroPadding2D");
}
}  // namespace nn

Flatten::Flatten(std::string name) : Layer(nn::make_layer<nn::FlattenImpl>("Flatten", std::move(name))) {}

Reshape::Reshape(std::vector<int64_t> target_shape, std::string name)
    : Layer(nn::make_layer<nn::ReshapeImpl>("Reshape", std::move(name), std::move(target_shape))) {}

ZeroPadding2D::ZeroPadding2D(Size2D padding, std::string name)
    : ZeroPadding2D(padding.height, padding.height, padding.width, padding.width, std::move(name)) {}
ZeroPadding2D::ZeroPadding2D(int64_t top, int64_t bottom, int64_t left, int64_t right, std::string name)
    : Layer(nn::make_layer<nn::ZeroPadding2DImpl>("ZeroPadding2D", std::move(name),
                                                  std::array{top, bottom, left, right})) {}

}  // namespace millpond
