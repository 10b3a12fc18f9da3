#include "millpond/layers/normalization.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "nn/classes.h"
#include "ops/batch_norm.h"
#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/cast.h"
#include "ops/layer_norm.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/transpose.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {
namespace {

// A constant that costs nothing until a pass finds it worth storing.
Value filled(CallContext& c, const Shape& shape, double value) {
  return ops::broadcast_to(c.builder(), c.builder().scalar(c.compute(), value), shape);
}
// Statistics of half types are float32's, as in Keras.
DType wide(DType t) { return is_half(t) ? DType::kFloat32 : t; }

// Dimensions in an order that puts `axes` last, keeping the order of the others.
std::vector<int> order_with_last(int rank, const std::vector<int>& axes) {
  std::vector<int> order;
  for (int i = 0; i < rank; ++i)
    if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);
  order.insert(order.end(), axes.begin(), axes.end());
  return order;
}
std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[size_t(order[i])] = int(i);
  return back;
}
bool moves(const std::vector<int>& order) { return !std::ranges::is_sorted(order); }

struct BatchNormalizationImpl final : LayerImpl {
  BatchNormalizationOptions o;
  Weight gamma, beta, moving_mean, moving_variance;
  explicit BatchNormalizationImpl(BatchNormalizationOptions options = {}) : o(std::move(options)) {}
  void options(Describer& d) override {
    d.option("axis", o.axis);
    d.option("momentum", o.momentum, between(0, 1));
    d.option("epsilon", o.epsilon, at_least(0));
    d.option("center", o.center);
    d.option("scale", o.scale);
    d.option("beta_initializer", o.beta_initializer);
    d.option("gamma_initializer", o.gamma_initializer);
    d.option("moving_mean_initializer", o.moving_mean_initializer);
    d.option("moving_variance_initializer", o.moving_variance_initializer);
    d.none({"beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint"});
    d.fixed("synchronized", "false");
    d.fixed("renorm", "false");
    d.none({"renorm_clipping"});
    d.without_effect("renorm_momentum", "0.99");
  }

  void build(std::span<const TensorType> x) override {
    const Shape channels{known_dimension(*this, x[0], o.axis)};
    if (o.scale) gamma = add_weight("gamma", channels, o.gamma_initializer);
    if (o.center) beta = add_weight("beta", channels, o.beta_initializer);
    moving_mean = add_weight("moving_mean", channels, o.moving_mean_initializer, false);
    moving_variance = add_weight("moving_variance", channels, o.moving_variance_initializer, false);
  }
  bool keeps_mask() const override { return true; }
  bool takes_masks(size_t) const override { return true; }
  Values call(CallContext& c, std::span<const Value> x) override {
    Builder& b = c.builder();
    const int rank = x[0].shape().rank();
    const Value mask = c.mask_of(x[0]);
    const auto order = order_with_last(rank, {canonical_axis(*this, o.axis, rank)});
    const Shape& channels = moving_mean->variable.type().shape;
    const CallContext::Computing computing(c, wide(policy.compute));
    Value in = as_float(c, x[0]);
    if (in.shape()[order.back()] != channels[0])
      throw Error(Code::kShape, format("BatchNormalization \"{}\": {} channels, but its weights are for {}", name,
                                       in.shape()[order.back()], channels[0]));
    if (moves(order)) in = ops::transpose(b, in, order);
    Value y;
    if (c.training() && trainable && mask) {
      y = by_what_counts(c, in, mask_over(c, x[0], mask, order));
    } else if (c.training() && trainable) {
      const Value g = gamma ? c.read(gamma) : filled(c, channels, 1), s = beta ? c.read(beta) : filled(c, channels, 0);
      const auto out = ops::batch_norm(b, in, g, s, o.epsilon);
      y = out[0];
      follow(c, moving_mean, out[1]);
      follow(c, moving_variance, out[2]);
    } else {
      Value scale = ops::rsqrt(b, ops::add(b, c.read(moving_variance), o.epsilon));
      if (gamma) scale = ops::multiply(b, scale, c.read(gamma));
      Value shift = ops::negate(b, ops::multiply(b, c.read(moving_mean), scale));
      if (beta) shift = ops::add(b, shift, c.read(beta));
      y = ops::add(b, ops::multiply(b, in, scale), shift);
    }
    y = ops::cast(b, y, policy.compute);
    return moves(order) ? ops::transpose(b, y, inverse(order)) : y;
  }
  // The mask over all of x, in the order in which the channels are last.
  Value mask_over(CallContext& c, Value x, Value mask, const std::vector<int>& order) const {
    Builder& b = c.builder();
    const Shape& shape = x.shape();
    if (mask.shape() != shape.slice(0, shape.rank() - 1))
      throw Error(Code::kShape, format("BatchNormalization \"{}\": its input is {}, but the mask of that is {}", name,
                                       shape, mask.shape()))
          .hint("a mask has all dimensions but the last");
    const Value over = ops::broadcast_to(b, ops::reshape(b, mask, shape.with(-1, 1)), shape);
    return moves(order) ? ops::transpose(b, over, order) : over;
  }
  // The statistics are those of what counts; all is normalized by them, as Keras does it.
  Value by_what_counts(CallContext& c, Value in, Value counts) const {
    constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()
    Builder& b = c.builder();
    std::vector<int> all(size_t(in.shape().rank() - 1));
    std::iota(all.begin(), all.end(), 0);
    const Value zero = b.scalar(in.dtype(), 0);
    const Value number = ops::add(b, ops::sum(b, ops::cast(b, counts, in.dtype()), all), kEpsilon);
    const auto mean_of = [&](Value v) {
      return ops::divide(b, ops::sum(b, ops::select(b, counts, v, zero), all), number);
    };
    const Value mean = mean_of(in), apart = ops::subtract(b, in, mean), variance = mean_of(ops::square(b, apart));
    Value scale = ops::rsqrt(b, ops::add(b, variance, o.epsilon));
    if (gamma) scale = ops::multiply(b, scale, c.read(gamma));
    Value y = ops::multiply(b, apart, scale);
    if (beta) y = ops::add(b, y, c.read(beta));
    follow(c, moving_mean, mean);
    follow(c, moving_variance, variance);
    return y;
  }
  void follow(CallContext& c, const Weight& moving, Value now) const {
    Builder& b = c.builder();
    c.assign(moving, ops::add(b, ops::multiply(b, c.read(moving), o.momentum), ops::multiply(b, now, 1 - o.momentum)));
  }
};

struct LayerNormalizationImpl final : LayerImpl {
  LayerNormalizationOptions o;
  Weight gamma, beta;
  bool axis_is_list = false;
  explicit LayerNormalizationImpl(LayerNormalizationOptions options = {}) : o(std::move(options)) {}
  void options(Describer& d) override {
    d.axes("axis", o.axis, axis_is_list);
    d.option("epsilon", o.epsilon, at_least(0));
    d.option("center", o.center);
    d.option("scale", o.scale);
    d.fixed("rms_scaling", "false");
    d.option("beta_initializer", o.beta_initializer);
    d.option("gamma_initializer", o.gamma_initializer);
    d.none({"beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint"});
  }

  std::vector<int> axes(int rank) const {
    std::vector<int> a;
    for (const int axis : o.axis) a.push_back(canonical_axis(*this, axis, rank));
    std::ranges::sort(a);
    if (a.empty() || a.front() == 0 || std::ranges::adjacent_find(a) != a.end())
      throw Error(Code::kUsage,
                  format("LayerNormalization \"{}\": axis [{}] must name each axis once, and not the batch", name,
                         fmt::join(o.axis, ", ")));
    return a;
  }
  void build(std::span<const TensorType> x) override {
    std::vector<int64_t> dims;
    for (const int a : axes(x[0].shape.rank())) dims.push_back(known_dimension(*this, x[0], a));
    if (o.scale) gamma = add_weight("gamma", Shape(dims), o.gamma_initializer);
    if (o.center) beta = add_weight("beta", Shape(dims), o.beta_initializer);
  }
  bool keeps_mask() const override { return true; }
  Values call(CallContext& c, std::span<const Value> x) override {
    Builder& b = c.builder();
    const CallContext::Computing computing(c, wide(policy.compute));
    Value in = as_float(c, x[0]);
    const auto last = axes(in.shape().rank());
    const auto order = order_with_last(in.shape().rank(), last);
    if (moves(order)) in = ops::transpose(b, in, order);
    const Shape moved = in.shape();
    const int kept = moved.rank() - int(last.size());
    const int64_t width = moved.slice(kept, moved.rank()).size();
    if (last.size() > 1) in = ops::reshape(b, in, {moved.size() / std::max<int64_t>(1, width), width});
    const auto weight = [&](const Weight& w, double otherwise) {
      if (!w) return filled(c, {width}, otherwise);
      return last.size() > 1 ? ops::reshape(b, c.read(w), {width}) : c.read(w);
    };
    Value y = ops::layer_norm(b, in, weight(gamma, 1), weight(beta, 0), o.epsilon)[0];
    y = ops::cast(b, y, policy.compute);
    if (last.size() > 1) y = ops::reshape(b, y, moved);
    return moves(order) ? ops::transpose(b, y, inverse(order)) : y;
  }
};

}  // namespace

void declare_normalization(LayerClasses& all) {
  all.add<BatchNormalizationImpl>("BatchNormalization");
  all.add<LayerNormalizationImpl>("LayerNormalization");
}
}  // namespace nn

BatchNormalization::BatchNormalization(BatchNormalizationOptions options) : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::BatchNormalizationImpl>("BatchNormalization", std::move(name), std::move(options));
}
LayerNormalization::LayerNormalization(LayerNormalizationOptions options) : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::LayerNormalizationImpl>("LayerNormalization", std::move(name), std::move(options));
}

}  // namespace millpond
