// MultiHeadAttention: softmax(query key^T / sqrt(key_dim)) value in several heads, between four dense projections.
// A query looks only at keys that count by the masks of query, value and key; the result has the query's mask.
// Memory: weights query, key, value [width, heads, key_dim] and attention_output; without dropout and masks the score
// matrix is never stored (the plan shows it: backward keeps one number a row).
#pragma once
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"

namespace millpond {

struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = {};  // none: key_dim
  double dropout = 0;
  bool use_bias = true;
  std::optional<int64_t> output_shape = {};  // none: the width of the query
  bool use_causal_mask =
      false;  // in every call; Keras gives it to the call: layer(query, value, {.use_causal_mask = true})
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  std::optional<uint64_t> seed = {};
  std::string name = "";
};

class MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(int64_t num_heads, int64_t key_dim, MultiHeadAttentionOptions options = {});
  using Layer::operator();
  SymbolicTensor operator()(const SymbolicTensor& query, const SymbolicTensor& value, CallOptions options = {}) const;
  SymbolicTensor operator()(const SymbolicTensor& query, const SymbolicTensor& value, const SymbolicTensor& key,
                            CallOptions options = {}) const;
};

}  // namespace millpond
