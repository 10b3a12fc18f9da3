#include <cmath>

#include "base/format.h"
#include "base/seed.h"
#include "millpond/layers/attention.h"
#include "nn/classes.h"
#include "ops/binary.h"
#include "ops/dropout.h"
#include "ops/matmul.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/transpose.h"

namespace millpond {
namespace nn {
namespace {

// One of the four dense projections. As matrices: in [width, heads * dim], out [heads * dim, width].
struct Projection {
  Weight kernel, bias;
};

struct MultiHeadAttentionImpl final : LayerImpl {
  int64_t heads, key_dim, value_dim = 0;
  MultiHeadAttentionOptions o;
  uint64_t salt = 0;
  Projection query, key, value, output;
  explicit MultiHeadAttentionImpl(int64_t h = 0, int64_t k = 0, MultiHeadAttentionOptions options = {})
      : heads(h), key_dim(k), o(std::move(options)) {}
  void options(Describer& d) override {
    d.required("num_heads", heads, at_least(1));
    d.required("key_dim", key_dim, at_least(1));
    d.option_like("value_dim", o.value_dim, "key_dim", key_dim, at_least(1));
    d.option("dropout", o.dropout, between(0, 1));
    d.option("use_bias", o.use_bias);
    d.fixed("use_gate", "false");
    d.list_of_one("output_shape", o.output_shape, at_least(1));
    d.fixed("attention_axes", "[1]");  // what Keras writes for sequences; more axes are for images
    d.none({"sliding_window"});
    d.option("kernel_initializer", o.kernel_initializer);
    d.option("bias_initializer", o.bias_initializer);
    d.none({"kernel_regularizer", "bias_regularizer", "activity_regularizer", "kernel_constraint", "bias_constraint"});
    d.option("seed", o.seed);
  }
  void settle() override {
    value_dim = o.value_dim.value_or(key_dim);
    salt = o.seed ? *o.seed : draw_seed();
  }
  void adjust(CallOptions& call) const override { call.use_causal_mask |= o.use_causal_mask; }
  bool takes_arguments() const override { return true; }

  static const TensorType& key_of(std::span<const TensorType> x) { return x.size() > 2 ? x[2] : x[1]; }
  void check(std::span<const TensorType> x) const {
    if (x.size() != 2 && x.size() != 3)
      throw Error(Code::kUsage, format("MultiHeadAttention \"{}\" is called on {} tensors", name, x.size()))
          .hint("call it on query and value, or on query, value and key");
    for (const TensorType& t : x) expect_rank(*this, t, 2, "sequences [length, width]");
    const int64_t values = x[1].shape[1], keys = key_of(x).shape[1];
    if (values != keys && values != None && keys != None)
      throw Error(Code::kShape,
                  format("MultiHeadAttention \"{}\": values have length {}, but keys {}", name, values, keys));
  }
  void build(std::span<const TensorType> x) override {
    check(x);
    const auto project = [&](const char* group, Shape kernel, Shape bias) {
      Projection p;
      p.kernel = add_weight("kernel", kernel, o.kernel_initializer, true, group);
      p.kernel->matrix = Shape{kernel.size() / bias.size(), bias.size()};
      if (o.use_bias) p.bias = add_weight("bias", bias, o.bias_initializer, true, group);
      return p;
    };
    query = project("query", {known_dimension(*this, x[0], -1), heads, key_dim}, {heads, key_dim});
    key = project("key", {known_dimension(*this, key_of(x), -1), heads, key_dim}, {heads, key_dim});
    value = project("value", {known_dimension(*this, x[1], -1), heads, value_dim}, {heads, value_dim});
    without_weights = {{"_softmax", automatic_name("Softmax")}, {"_dropout_layer", automatic_name("Dropout")}};
    const int64_t out = o.output_shape.value_or(x[0].shape.back());
    output = project("attention_output", {heads, value_dim, out}, {out});
  }

  // [batch, length, width] to [batch, heads, length, dim]
  Value split(CallContext& c, const Projection& p, Value x) const {
    Builder& b = c.builder();
    const Shape k = p.kernel->variable.type().shape;
    const int64_t batch = x.shape()[0], length = x.shape()[1], width = k[0], dim = k[2];
    if (x.shape().back() != width)
      throw Error(Code::kShape, format("MultiHeadAttention \"{}\": a sequence is {} wide, but {}'s kernel is for {}",
                                       name, x.shape().back(), p.kernel->group, width));
    Value y = ops::matmul(b, ops::reshape(b, x, {batch * length, width}),
                          ops::reshape(b, c.read(p.kernel), {width, heads * dim}));
    if (p.bias) y = ops::add(b, y, ops::reshape(b, c.read(p.bias), {heads * dim}));
    return ops::transpose(b, ops::reshape(b, y, {batch, length, heads, dim}), {0, 2, 1, 3});
  }

  bool takes_masks(size_t) const override { return true; }
  Values call(CallContext& c, std::span<const Value> x) override {
    Builder& b = c.builder();
    std::vector<TensorType> types;
    for (Value v : x) types.push_back(v.type());
    check(types);
    const bool causal = c.options().use_causal_mask;  // of the layer, or of this call
    const bool drops = c.training() && o.dropout > 0;
    const double scale = 1 / std::sqrt(double(key_dim));
    const Value q = split(c, query, as_float(c, x[0]));
    const Value v = split(c, value, as_float(c, x[1]));
    const Value k = split(c, key, as_float(c, x.size() > 2 ? x[2] : x[1]));
    const int64_t batch = q.shape()[0], length = q.shape()[2], keys = k.shape()[2];
    // Written out in full; without dropout and masks the attention pass puts one operator in place of the five.
    Value scores = ops::matmul(b, ops::multiply(b, q, scale), k, false, true);
    const Value seen = seen_by(c, x, causal);
    if (seen)
      scores = ops::select(b, seen, scores, b.scalar(scores.dtype(), hidden(c)));
    else if (causal)
      scores = ops::add(b, scores, causal_mask(c, length, keys));
    Value p = ops::softmax(b, scores);
    // A query that may look at nothing looks at all alike; in Keras's path of layers with dropout at nothing.
    if (seen && o.dropout > 0) p = ops::select(b, seen, p, b.scalar(p.dtype(), 0));
    if (drops) p = ops::dropout(b, p, c.counter(), o.dropout, salt);
    Value y = ops::matmul(b, p, v);
    y = ops::reshape(b, ops::transpose(b, y, {0, 2, 1, 3}), {batch * length, heads * value_dim});
    const int64_t out = output.kernel->variable.type().shape.back();
    y = ops::matmul(b, y, ops::reshape(b, c.read(output.kernel), {heads * value_dim, out}));
    if (output.bias) y = ops::add(b, y, c.read(output.bias));
    y = ops::reshape(b, y, {batch, length, out});
    c.set_mask(y, c.mask_of(x[0]));  // there is a result for each query
    return y;
  }

  // So far below every score that exp gives 0; float16 has nothing below.
  static double hidden(const CallContext& c) { return c.compute() == DType::kFloat16 ? -6e4 : -1e9; }

  // Which keys a query looks at, bool [batch or 1, 1, queries or 1, keys or 1]: both must count, for a key also its
  // value, and the key may not come later where the call is causal. Null where no operand has a mask.
  Value seen_by(CallContext& c, std::span<const Value> x, bool causal) const {
    Builder& b = c.builder();
    const int64_t batch = x[0].shape()[0], length = x[0].shape()[1], keys = x[1].shape()[1];
    Value seen;
    const auto also = [&](Value mask) {
      seen = seen ? ops::binary(b, ops::Function::k_bitwise_and, seen, mask) : mask;
    };
    if (const Value mask = c.mask_of(x[0])) also(ops::reshape(b, mask, {batch, 1, length, 1}));
    for (const Value v : x.subspan(1))
      if (const Value mask = c.mask_of(v)) also(ops::reshape(b, mask, {batch, 1, 1, keys}));
    if (!seen || !causal) return seen;
    Tensor before(DType::kBool, {length, keys}, "constants");
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < keys; ++j) before.values<bool>()[size_t(i * keys + j)] = j <= i;
    also(b.constant(std::move(before), "causal_mask"));
    return seen;
  }

  // 0 where a query may look, hidden() where not.
  static Value causal_mask(CallContext& c, int64_t length, int64_t keys) {
    Tensor m(DType::kFloat32, {length, keys}, "constants");
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = i + 1; j < keys; ++j) m.values<float>()[size_t(i * keys + j)] = float(hidden(c));
    if (c.compute() != DType::kFloat32) m = m.astype(c.compute(), "constants");
    return c.builder().constant(std::move(m), "causal_mask");
  }
};

}  // namespace

void declare_attention(LayerClasses& all) { all.add<MultiHeadAttentionImpl>("MultiHeadAttention"); }
}  // namespace nn

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim, MultiHeadAttentionOptions options)
    : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::MultiHeadAttentionImpl>("MultiHeadAttention", std::move(name), num_heads, key_dim,
                                                     std::move(options));
}
SymbolicTensor MultiHeadAttention::operator()(const SymbolicTensor& query, const SymbolicTensor& value,
                                              CallOptions options) const {
  return Layer::operator()(std::vector{query, value}, options);
}
SymbolicTensor MultiHeadAttention::operator()(const SymbolicTensor& query, const SymbolicTensor& value,
                                              const SymbolicTensor& key, CallOptions options) const {
  return Layer::operator()(std::vector{query, value, key}, options);
}

}  // namespace millpond
