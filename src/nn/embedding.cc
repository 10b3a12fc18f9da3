#include "millpond/layers/embedding.h"

#include "base/format.h"
#include "nn/layer.h"
#include "ops/cast.h"
#include "ops/gather.h"

namespace millpond {
namespace nn {
namespace {

struct EmbeddingImpl final : LayerImpl {
  int64_t count, width;
  EmbeddingOptions o;
  Weight table;
  EmbeddingImpl(int64_t n, int64_t w, EmbeddingOptions options) : count(n), width(w), o(std::move(options)) {}
  void build(std::span<const TensorType>) override { table = add_weight("embeddings", {count, width}, o.embeddings_initializer); }
  Value call(CallContext& c, std::span<const Value> x) override {
    c.limit(x[0], count, name);
    const Value index = x[0].dtype() == DType::kInt64 ? x[0] : ops::cast(c.builder(), x[0], DType::kInt32);
    return ops::gather(c.builder(), c.read(table), index);
  }
};

}  // namespace
}  // namespace nn

Embedding::Embedding(int64_t input_dim, int64_t output_dim, EmbeddingOptions options) : Layer(nullptr) {
  nn::expect_positive("Embedding", "input_dim", input_dim);
  nn::expect_positive("Embedding", "output_dim", output_dim);
  std::string name = options.name;
  impl_ = nn::make_layer<nn::EmbeddingImpl>("Embedding", std::move(name), input_dim, output_dim, std::move(options));
}

}  // namespace millpond
