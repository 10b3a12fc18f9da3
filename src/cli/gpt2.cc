// GPT-2 of 124 million values: token and position embeddings, 12 blocks (normalise, attend, add; normalise, two dense
// layers, add), and the token embedding used again, transposed, for the output.
#include "cli/builtin.h"
#include "millpond/millpond.h"

namespace millpond::cli {
namespace {

namespace mx = millpond::extend;

constexpr int64_t kVocabulary = 50257, kWidth = 768, kSequence = 256;
constexpr int kBlocks = 12, kHeads = 12;

// Row of the token plus row of its place. Memory: weights tokens [vocabulary, width] and positions [sequence, width].
struct TokenAndPosition final : mx::OwnLayer {
  mx::Weight tokens, positions;
  void build(mx::Build& b, std::span<const mx::Type> x) override {
    tokens = b.add_weight("tokens", {kVocabulary, kWidth}, RandomNormal(0, 0.02));
    positions = b.add_weight("positions", {x[0].shape[1], kWidth}, RandomNormal(0, 0.01));
  }
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    c.limit(x[0], kVocabulary);
    return mx::gather(c.read(tokens), x[0]) + c.read(positions);
  }
};

// How well each token fits: x tokens^T. Memory: no weight of its own.
struct TokenLogits final : mx::OwnLayer {
  std::shared_ptr<TokenAndPosition> embedding;
  explicit TokenLogits(std::shared_ptr<TokenAndPosition> e) : embedding(std::move(e)) {}
  mx::Values call(mx::Call& c, std::span<const mx::Value> x) override {
    return mx::matmul(x[0], c.read(embedding->tokens), false, true);
  }
};

}  // namespace

Model gpt2() {
  const Input tokens({kSequence}, DType::kInt32);
  const auto embedding = std::make_shared<TokenAndPosition>();
  SymbolicTensor x = mx::make_layer(embedding, "embedding")(tokens);
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
  x = mx::own_layer<TokenLogits>("logits", embedding)(x);
  x = Softmax(-1, "predictions")(x);
  return Model({tokens}, {x}, "gpt2");
}

}  // namespace millpond::cli
