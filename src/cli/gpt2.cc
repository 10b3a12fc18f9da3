// GPT-2 of 124 million values: token and position embeddings, 12 blocks (normalise, attend, add; normalise, two dense
// layers, add), and the token embedding used again, transposed, for the output.
#include "cli/builtin.h"
#include "millpond/millpond.h"
#include "nn/layer.h"
#include "ops/binary.h"
#include "ops/gather.h"
#include "ops/matmul.h"

namespace millpond::cli {
namespace {

constexpr int64_t kVocabulary = 50257, kWidth = 768, kSequence = 256;
constexpr int kBlocks = 12, kHeads = 12;

// Row of the token plus row of its place. Memory: weights tokens [vocabulary, width] and positions [sequence, width].
struct TokenAndPositionImpl final : nn::LayerImpl {
  nn::Weight tokens, positions;
  void build(std::span<const nn::TensorType> x) override {
    tokens = add_weight("tokens", {kVocabulary, kWidth}, RandomNormal(0, 0.02));
    positions = add_weight("positions", {x[0].shape[1], kWidth}, RandomNormal(0, 0.01));
  }
  nn::Values call(nn::CallContext& c, std::span<const nn::Value> x) override {
    c.limit(x[0], kVocabulary, name);
    return ops::add(c.builder(), ops::gather(c.builder(), c.read(tokens), x[0]), c.read(positions));
  }
};

// How well each token fits: x tokens^T. Memory: no weight of its own.
struct TokenLogitsImpl final : nn::LayerImpl {
  std::shared_ptr<TokenAndPositionImpl> embedding;
  explicit TokenLogitsImpl(std::shared_ptr<TokenAndPositionImpl> e) : embedding(std::move(e)) {}
  nn::Values call(nn::CallContext& c, std::span<const nn::Value> x) override {
    return ops::matmul(c.builder(), x[0], c.read(embedding->tokens), false, true);
  }
};

}  // namespace

Model gpt2() {
  const Input tokens({kSequence}, DType::kInt32);
  const auto embedding = nn::make_layer<TokenAndPositionImpl>("TokenAndPosition", "embedding");
  SymbolicTensor x = Layer(embedding)(tokens);
  for (int b = 0; b < kBlocks; ++b) {
    const std::string at = "block" + std::to_string(b) + "_";
    SymbolicTensor y = LayerNormalization({.epsilon = 1e-5, .name = at + "norm1"})(x);
    y = MultiHeadAttention(kHeads, kWidth / kHeads, {.name = at + "attention"})(y, y, {.use_causal_mask = true});
    x = Add(at + "add1")({x, y});
    y = LayerNormalization({.epsilon = 1e-5, .name = at + "norm2"})(x);
    y = Dense(4 * kWidth, gelu_tanh, {.name = at + "up"})(y);
    y = Dense(kWidth, {.name = at + "down"})(y);
    x = Add(at + "add2")({x, y});
  }
  x = LayerNormalization({.epsilon = 1e-5, .name = "norm"})(x);
  x = Layer(nn::make_layer<TokenLogitsImpl>("TokenLogits", "logits",
                                            std::static_pointer_cast<TokenAndPositionImpl>(embedding)))(x);
  x = Softmax(-1, "predictions")(x);
  return Model({tokens}, {x}, "gpt2");
}

}  // namespace millpond::cli
