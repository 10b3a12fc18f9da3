// Layer: a handle to configuration and weights that its copies share. Calling one on a symbolic tensor notes what shall
// be computed; nothing is computed and no memory is taken until a model trains or predicts.
//
//   auto x = Input({100});
//   auto y = Dense(10, softmax)(Dense(64, relu)(x));
//   Model model({x}, {y});
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/dtype_policy.h"
#include "millpond/eager.h"
#include "millpond/tensor.h"
#include "millpond/variable.h"

namespace millpond {

namespace nn {
struct LayerImpl;
struct CallNode;
}  // namespace nn
class Input;

/// What a layer will give: shape and dtype of one sample, and how it comes about. Keras calls it KerasTensor.
class SymbolicTensor {
 public:
  SymbolicTensor() = default;
  SymbolicTensor(std::shared_ptr<const nn::CallNode> node, int output) : node_(std::move(node)), output_(output) {}

  explicit operator bool() const { return node_ != nullptr; }
  /// Of one sample: without the batch in front. What data alone will say is None.
  Shape shape() const;
  DType dtype() const;
  bool operator==(const SymbolicTensor&) const = default;

  const std::shared_ptr<const nn::CallNode>& node() const { return node_; }
  int output() const { return output_; }

 private:
  std::shared_ptr<const nn::CallNode> node_;
  int output_ = 0;
};

/// What a call may add to its tensors.
struct CallOptions {
  bool use_causal_mask = false;       // MultiHeadAttention
  std::optional<bool> training = {};  // as if training or not, whatever the model does
};

class Layer {
 public:
  explicit Layer(std::shared_ptr<nn::LayerImpl> impl) : impl_(std::move(impl)) {}
  Layer(const Input& input);  // so that Sequential{Input(...), ...} reads as in Keras

  SymbolicTensor operator()(const SymbolicTensor& x, CallOptions options = {}) const;
  SymbolicTensor operator()(const std::vector<SymbolicTensor>& xs, CallOptions options = {}) const;
  /// Of a layer that gives several tensors, and of a model with several outputs: all of them.
  [[nodiscard]] std::vector<SymbolicTensor> call_all(const std::vector<SymbolicTensor>& xs,
                                                     CallOptions options = {}) const;
  /// On values: computed at once, as one planned program for operands of these types and shapes, which the layer keeps
  /// (as many as 64). `training` is false unless the options say otherwise; a layer with a state, such as
  /// BatchNormalization, changes it when training. A mask, which the operand may have got from a layer before, is obeyed
  /// and handed on. Throws as the symbolic call does, and Error(kValue) for an index that is out of range.
  EagerTensor operator()(const EagerTensor& x, CallOptions options = {}) const;
  EagerTensor operator()(const EagerTensor& x, bool training) const {
    return operator()(x, CallOptions{.training = training});
  }
  EagerTensor operator()(const EagerTensors& xs, CallOptions options = {}) const;
  [[nodiscard]] EagerTensors call_all(const EagerTensors& xs, CallOptions options = {}) const;

  const std::string& name() const;
  /// Keras's class name: "Dense".
  std::string_view type() const;
  /// The options as Keras's get_config() gives them, as JSON; and a new layer of them, with weights of its own. Throws
  /// Error(kUnsupported) naming a class or an option that is not here and the nearest one that is, Error(kFormat) or
  /// Error(kUsage) for a value that is not allowed.
  std::string get_config() const;
  static Layer from_config(std::string_view type, std::string_view config);
  /// A layer that is not trainable keeps its weights; takes effect at the next compile, as in Keras.
  bool trainable() const;
  void set_trainable(bool trainable);
  /// What weights are kept in and what is computed in; of a model: of all its layers. Throws Error(kUsage) once the
  /// layer has been called, because its weights have their types then.
  DTypePolicy dtype_policy() const;
  void set_dtype_policy(DTypePolicy policy);
  /// Number of weight values; 0 before the layer has been called.
  int64_t count_params() const;
  /// Copies of the weights, trainable ones first.
  std::vector<Tensor> get_weights() const;
  void set_weights(const std::vector<Tensor>& weights);
  /// "kernel", "bias", ... in the order of get_weights.
  std::vector<std::string> weight_names() const;
  /// The weights themselves, in the order of get_weights; those that training changes; and states. None before the layer
  /// has been called.
  Variables variables() const;
  Variables trainable_variables() const;
  Variables non_trainable_variables() const;

  const std::shared_ptr<nn::LayerImpl>& impl() const { return impl_; }

 protected:
  std::shared_ptr<nn::LayerImpl> impl_;
};

/// Two numbers for height and width; one number is both.
struct Size2D {
  int64_t height = 1, width = 1;
  constexpr Size2D(int n) : height(n), width(n) {}
  constexpr Size2D(int64_t n) : height(n), width(n) {}
  constexpr Size2D(int64_t h, int64_t w) : height(h), width(w) {}
  constexpr bool operator==(const Size2D&) const = default;
};

/// A Size2D, or nothing: "as another option says".
struct OptionalSize2D : std::optional<Size2D> {
  constexpr OptionalSize2D() = default;
  constexpr OptionalSize2D(Size2D size) : std::optional<Size2D>(size) {}
  constexpr OptionalSize2D(int n) : OptionalSize2D(Size2D(n)) {}
  constexpr OptionalSize2D(int64_t n) : OptionalSize2D(Size2D(n)) {}
  constexpr OptionalSize2D(int64_t h, int64_t w) : OptionalSize2D(Size2D(h, w)) {}
};

/// "valid": none. "same": as many outputs as inputs (divided by the stride), padded as TensorFlow does.
struct Padding {
  bool same = false;
  constexpr Padding() = default;
  Padding(std::string_view name);  // throws Error(kUsage) for anything else
  Padding(const char* name) : Padding(std::string_view(name)) {}
  Padding(const std::string& name) : Padding(std::string_view(name)) {}
};

}  // namespace millpond
