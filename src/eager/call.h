// call: layers, losses and activations on eager tensors. Each is traced into a graph for operands of given types, which
// becomes a function (eager/function.h); a layer keeps its own, so that they go with it.
#pragma once
#include "eager/function.h"
#include "nn/layer.h"

namespace millpond::eager {

/// The results, with masks, and with what went into a softmax or sigmoid that made them.
std::vector<Ref> call_layer(const std::shared_ptr<nn::LayerImpl>& layer, std::vector<Ref> inputs, CallOptions options);

/// The function of this key, made if it is not there; `keep` is what the key tells by its address. Under Context::mutex.
std::shared_ptr<Function> kept_function(Context& c, const graph::Key& key, const std::shared_ptr<const void>& keep,
                                        const std::function<void(graph::Builder&)>& write);

/// What a loss or a metric sees of a prediction: what went into the softmax or sigmoid that made it, where that is known.
struct Seen {
  Ref input;  // of the function
  enum class By : uint8_t { kItself, kSoftmax, kSigmoid } by = By::kItself;
  Ref mask;  // or null
  /// The prediction in a graph that has `input` as an input.
  graph::Value prediction(graph::Builder& b, graph::Value in) const;
  TensorType type;  // of the prediction
};
Seen seen(const Ref& prediction);

}  // namespace millpond::eager
