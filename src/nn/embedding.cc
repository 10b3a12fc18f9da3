#include "millpond/layers/embedding.h"

#include "nn/classes.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/gather.h"

namespace millpond {
namespace nn {
namespace {

struct EmbeddingImpl final : LayerImpl {
  int64_t count, width;
  EmbeddingOptions o;
  Weight table;
  explicit EmbeddingImpl(int64_t n = 0, int64_t w = 0, EmbeddingOptions options = {})
      : count(n), width(w), o(std::move(options)) {}
  void options(Describer& d) override {
    d.required("input_dim", count, at_least(1));
    d.required("output_dim", width, at_least(1));
    d.option("embeddings_initializer", o.embeddings_initializer);
    d.none({"embeddings_regularizer", "activity_regularizer", "embeddings_constraint"});
    d.option("mask_zero", o.mask_zero);
    d.none({"quantization_config"});
  }
  std::optional<double> masks_value() const override { return o.mask_zero ? std::optional(0.0) : std::nullopt; }
  void build(std::span<const TensorType>) override {
    table = add_weight("embeddings", {count, width}, o.embeddings_initializer);
  }
  Values call(CallContext& c, std::span<const Value> x) override {
    c.limit(x[0], count, name);
    const Value index = x[0].dtype() == DType::kInt64 ? x[0] : ops::cast(c.builder(), x[0], DType::kInt32);
    // the rows are cast, not the table
    const Value y = as_float(c, ops::gather(c.builder(), c.stored(table), index));
    if (o.mask_zero) c.set_mask(y, ops::greater(c.builder(), index, c.builder().scalar(index.dtype(), 0)));
    return y;
  }
};

}  // namespace

void declare_embedding(LayerClasses& all) { all.add<EmbeddingImpl>("Embedding"); }
}  // namespace nn

Embedding::Embedding(int64_t input_dim, int64_t output_dim, EmbeddingOptions options) : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::EmbeddingImpl>("Embedding", std::move(name), input_dim, output_dim, std::move(options));
}

}  // namespace millpond
