// Embedding: a row of a table for each integer.
// Memory: weight embeddings [input_dim, output_dim]. An integer out of range is refused when its batch is staged.
#pragma once
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"

namespace millpond {

struct EmbeddingOptions {
  Initializer embeddings_initializer = "uniform";
  bool mask_zero = false;  // 0 stands for no word: layers behind that look at masks leave it out
  std::string name = "";
};

class Embedding : public Layer {
 public:
  Embedding(int64_t input_dim, int64_t output_dim, EmbeddingOptions options = {});
};

}  // namespace millpond
