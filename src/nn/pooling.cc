#include "millpond/layers/pooling.h"
#include "base/format.h"
#include "nn/classes.h"
#include "nn/window.h"
#include "ops/average_pool2d.h"
#include "ops/max_pool2d.h"
#include "ops/reduce.h"

namespace millpond {
namespace nn {

ops::Window window_for(const LayerImpl& layer, const Shape& images, Size2D size, Size2D strides, Size2D dilation,
                       Padding padding) {
  ops::Window w{.height = size.height,
                .width = size.width,
                .stride_h = strides.height,
                .stride_w = strides.width,
                .dilation_h = dilation.height,
                .dilation_w = dilation.width};
  if (padding.same) w.pad_same(images[1], images[2]);
  const int64_t high = dilation.height * (size.height - 1) + 1, wide = dilation.width * (size.width - 1) + 1;
  if (!padding.same && (images[1] < high || images[2] < wide))
    throw Error(Code::kShape, format("{} \"{}\": its window covers {}x{} pixels, but images are {}x{}", layer.type,
                                     layer.name, high, wide, images[1], images[2]))
        .hint("use padding \"same\", a smaller window or larger images");
  return w;
}

namespace {

struct Pooling2DImpl final : LayerImpl {
  bool max;
  Size2D size;
  Pooling2DOptions o;
  explicit Pooling2DImpl(bool m, Size2D s = 2, Pooling2DOptions options = {})
      : max(m), size(s), o(std::move(options)) {}
  void options(Describer& d) override {
    d.option("pool_size", size, at_least(1));
    d.option("padding", o.padding);
    d.option_like("strides", o.strides, "pool_size", size, at_least(1));
    d.fixed("data_format", "\"channels_last\"");
  }

  Values call(CallContext& c, std::span<const Value> x) override {
    expect_rank(*this, x[0].type(), 3, "images [height, width, channels]");
    const ops::Window w = window_for(*this, x[0].shape(), size, o.strides.value_or(size), 1, o.padding);
    return max ? ops::max_pool2d(c.builder(), x[0], w) : ops::average_pool2d(c.builder(), as_float(c, x[0]), w);
  }
};

struct GlobalAveragePooling2DImpl final : LayerImpl {
  bool keepdims;
  explicit GlobalAveragePooling2DImpl(bool keep = false) : keepdims(keep) {}
  void options(Describer& d) override {
    d.fixed("data_format", "\"channels_last\"");
    d.option("keepdims", keepdims);
  }
  Values call(CallContext& c, std::span<const Value> x) override {
    expect_rank(*this, x[0].type(), 3, "images [height, width, channels]");
    return ops::mean(c.builder(), as_float(c, x[0]), {1, 2}, keepdims);
  }
};

std::shared_ptr<LayerImpl> make_pooling(const char* type, bool max, Size2D size, Pooling2DOptions o) {
  std::string name = o.name;
  return make_layer<Pooling2DImpl>(type, std::move(name), max, size, std::move(o));
}

}  // namespace

void declare_pooling(LayerClasses& all) {
  all.add<Pooling2DImpl>("MaxPooling2D", true);
  all.add<Pooling2DImpl>("AveragePooling2D", false);
  all.add<GlobalAveragePooling2DImpl>("GlobalAveragePooling2D");
}
}  // namespace nn

MaxPooling2D::MaxPooling2D(Size2D pool_size, Pooling2DOptions options)
    : Layer(nn::make_pooling("MaxPooling2D", true, pool_size, std::move(options))) {}
AveragePooling2D::AveragePooling2D(Size2D pool_size, Pooling2DOptions options)
    : Layer(nn::make_pooling("AveragePooling2D", false, pool_size, std::move(options))) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(GlobalPooling2DOptions options)
    : Layer(nn::make_layer<nn::GlobalAveragePooling2DImpl>("GlobalAveragePooling2D", options.name, options.keepdims)) {}

}  // namespace millpond
