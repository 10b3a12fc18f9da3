// Network: which layers are called on what, from inputs to outputs. Calls are noted while a user writes a model; a
// trace replays them into a graph for a given batch. The order of layers is Keras's, so that weights come in the same
// order.
#pragma once
#include "millpond/layers/layer.h"
#include "nn/layer.h"

namespace millpond::nn {

struct Network;

/// The mask of a result: its type, and which tensors it is made from, by comparing each with a number. Without these the
/// result has none.
struct Mask {
  struct Source {
    SymbolicTensor tensor;
    double unlike = 0;
    bool operator==(const Source&) const = default;
  };
  TensorType type;
  std::vector<Source> from;
  /// In Keras masks are made by operators that stand in the graph of layers: the calls that these read, and how many
  /// operators away each is.
  std::vector<std::pair<const CallNode*, int>> behind = {};
};

/// One call of a layer. Owns the layer and the calls before it; nothing points forward, so a model that goes takes all
/// along.
struct CallNode {
  std::shared_ptr<LayerImpl> layer;
  std::vector<SymbolicTensor> inputs;
  CallOptions options;
  std::vector<TensorType> types;  // of the results, for a batch of one; None where the inputs' None decides
  int number = 0;                 // among the calls of its layer, as they were made
  std::vector<Mask> masks = {};   // of the results; empty: none has one
  std::vector<std::pair<std::string, bool>> noted =
      {};  // what a model of Keras adds to the call without effect: only written again
  ~CallNode();
};

/// Calls the layer symbolically: builds it, infers the result's type.
std::shared_ptr<CallNode> make_call(const std::shared_ptr<LayerImpl>& layer, std::vector<SymbolicTensor> inputs,
                                    CallOptions options = {});
/// `want`, with what is None in it taken from `got`; nothing where the two do not go together. As in Keras a last
/// dimension of 1 may come or go.
std::optional<Shape> fitted(const Shape& want, const Shape& got);
/// Types of what the network gives for one sample whose inputs have these shapes (all known).
std::vector<TensorType> output_types(const Network& net, std::span<const Shape> samples);
/// The only result; throws Error(kUsage) where there are several.
SymbolicTensor call(const std::shared_ptr<LayerImpl>& layer, std::vector<SymbolicTensor> inputs,
                    CallOptions options = {});
/// Type of a symbolic tensor for a batch of one.
const TensorType& type_of(const SymbolicTensor& t);
const Mask& mask_of(const SymbolicTensor& t);

struct InputImpl final : LayerImpl {
  TensorType sample;
  explicit InputImpl(TensorType t = {}) : sample(std::move(t)) {}
  void describe(Describer& d) override;
  void settle() override;
  Values call(CallContext&, std::span<const Value> x) override { return x[0]; }
};
/// The tensor that an input gives.
SymbolicTensor tensor_of(const std::shared_ptr<LayerImpl>& input);

/// A network is a layer too: call() traces all of its own.
struct Network final : LayerImpl {
  std::vector<SymbolicTensor> inputs, outputs;
  std::vector<std::shared_ptr<const CallNode>> calls;  // in the order of computing
  std::vector<std::shared_ptr<LayerImpl>> layers;      // each once, inputs among them, in Keras's order
  bool sequential = false;
  bool inputs_are_list = false, outputs_are_list = false;  // one alone, written as a list of one

  /// Fills calls and layers. Throws Error(kUsage) when an output does not depend on the inputs alone, or names repeat.
  void connect();
  /// Outputs for these inputs.
  std::vector<Value> trace(CallContext& c, std::span<const Value> xs) const;
  Values call(CallContext& c, std::span<const Value> xs) override;
  std::vector<std::shared_ptr<LayerImpl>> children() const override { return layers; }
  /// Some input has a dimension that data will say.
  bool open() const;
  bool takes_masks(size_t) const override { return true; }
};

std::shared_ptr<Network> make_network(std::vector<SymbolicTensor> inputs, std::vector<SymbolicTensor> outputs,
                                      std::string name, bool sequential = false);
/// Chains layers behind the first, which must be an input.
std::shared_ptr<Network> make_sequential(std::span<const Layer> layers, std::string name);

/// All weights of a network, in Keras's order, each once.
std::vector<Weight> weights_of(const Network& net);
/// "dense/kernel": the layer that owns each weight, in the order of weights_of.
struct OwnedWeight {
  Weight weight;
  const LayerImpl* layer;
};
std::vector<OwnedWeight> owned_weights(const Network& net);

/// Copies values into weights after checking all of them. `whose` begins the error's text.
void set_weights(std::span<const Weight> weights, const std::vector<Tensor>& values, const std::string& whose);

}  // namespace millpond::nn
