// LayerImpl: what a Layer handle points to. A new layer is a struct with three functions and a line that declares it:
//
//   struct ScaleImpl final : LayerImpl {
//     Initializer init = "ones";
//     Weight gain;
//     ScaleImpl() = default;
//     explicit ScaleImpl(Initializer i) : init(i) {}
//     void options(Describer& d) override { d.option("gain_initializer", init); }
//     void build(std::span<const TensorType> x) override { gain = add_weight("gain", {x[0].shape.back()}, init); }
//     Value call(CallContext& c, std::span<const Value> x) override { return ops::multiply(c.builder(), x[0], c.read(gain)); }
//   };
//   void declare_scale(LayerClasses& all) { all.add<ScaleImpl>("Scale"); }
//   Scale::Scale(Initializer gain, std::string name) : Layer(make_layer<ScaleImpl>("Scale", std::move(name), std::move(gain))) {}
//
// Types and values carry the batch in front.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "millpond/initializers.h"
#include "millpond/layers/layer.h"
#include "nn/describe.h"
#include "runtime/variable.h"

namespace millpond::nn {

using graph::Builder;
using graph::TensorType;
using graph::Value;

/// A weight: its place in memory once a model needs it, and how it is filled then.
struct WeightState {
  std::string name;   // "kernel"
  std::string group;  // of a layer inside the layer: "query"; otherwise empty
  bool trainable = true;
  Initializer initializer;
  uint64_t seed = 0;  // drawn when the weight was made, so that the order of making, not of use, decides
  runtime::Variable variable;
  std::optional<Shape> matrix = {};  // [inputs, outputs] as an initializer counts them, where the shape does not tell

  /// "query/kernel"
  std::string path() const { return group.empty() ? name : group + "/" + name; }
};
using Weight = std::shared_ptr<WeightState>;

/// The state of one trace: what a layer may use while it says what it computes.
class CallContext {
 public:
  CallContext(Builder& b, bool training, runtime::Variable* counter = nullptr)
      : builder_(b), training_(training), counter_(counter) {}

  Builder& builder() { return builder_; }
  bool training() const { return call_.training.value_or(training_); }
  const CallOptions& options() const { return call_; }

  /// The weight as it is before the step.
  Value read(const Weight& w);
  /// What the weight holds after the step (moving averages). A later call in the same trace reads this.
  void assign(const Weight& w, Value value);
  /// int32 scalar, different in every step: the source of a layer's randomness.
  Value counter();
  /// Values of `index`, if they are a model's input, must lie in [0, count): checked when a batch is staged.
  void limit(Value index, int64_t count, const std::string& layer);

  struct Limit {
    std::string input;
    int64_t count = 0;
    std::string layer;
  };
  struct Assignment {
    Weight weight;
    Value value;
  };
  const std::vector<Limit>& limits() const { return limits_; }
  const std::vector<Assignment>& assignments() const { return assignments_; }
  bool random() const { return bool(counter_value_); }
  Value counter_value() const { return counter_value_; }

 private:
  friend struct Network;
  Builder& builder_;
  bool training_;
  CallOptions call_;
  runtime::Variable* counter_;  // of the model; null while only shapes are wanted
  Value counter_value_;
  std::unordered_map<const WeightState*, Value> values_;
  std::vector<Limit> limits_;
  std::vector<Assignment> assignments_;
};

struct LayerImpl : Described {
  std::string name;
  std::string type;  // Keras's class name
  bool trainable = true;
  bool built = false;
  int calls = 0;  // so far: each call knows its number

  /// What all layers have, then this layer's own.
  void describe(Describer& d) override;
  virtual void options(Describer&) {}
  /// What the layer's own options add to those of every call.
  virtual void adjust(CallOptions&) const {}
  /// Several tensors are arguments of their own in Keras, not one list.
  virtual bool takes_arguments() const { return false; }
  /// Dense "head"
  std::string who() const;

  /// Makes the weights; called once, before the first call.
  virtual void build(std::span<const TensorType>) {}
  virtual Value call(CallContext& c, std::span<const Value> inputs) = 0;
  /// Layers inside this one that are layers of their own (a model used as a layer).
  virtual std::vector<std::shared_ptr<LayerImpl>> children() const { return {}; }
  /// Attribute and name of layers that Keras keeps inside this one and that have no weights: a weight file has a group
  /// for each.
  std::vector<std::pair<std::string, std::string>> without_weights;

  /// Trainable ones first; those of children behind.
  std::vector<Weight> weights() const;
  /// Own weights only, in the order of making.
  const std::vector<Weight>& own_weights() const { return weights_; }

 protected:
  Weight add_weight(std::string name, Shape shape, const Initializer& init, bool trainable = true,
                    std::string group = "");

 private:
  std::vector<Weight> weights_;
};

/// An automatic name from Keras's class name: "dense", "dense_1", ...
std::string automatic_name(std::string_view type);
std::string snake_case(std::string_view type);

/// Checks the options of a new layer, and names it if nobody has.
void settle_layer(LayerImpl& layer);

template <class Impl, class... Args>
std::shared_ptr<LayerImpl> make_layer(std::string_view type, std::string name, Args&&... args) {
  auto impl = std::make_shared<Impl>(std::forward<Args>(args)...);
  impl->type = type;
  impl->name = std::move(name);
  settle_layer(*impl);
  return impl;
}

/// Builds the layer if this is its first call, with the layer's name in any error.
void ensure_built(LayerImpl& layer, std::span<const TensorType> inputs);

/// Gives all weights that have no memory yet their place, together, and fills them.
void materialize(std::span<const Weight> weights);

/// float32, as Keras's layers compute.
Value as_float(CallContext& c, Value x);
/// Throws Error(kShape) unless x has `rank` dimensions beside the batch.
void expect_rank(const LayerImpl& layer, const TensorType& x, int rank, const char* wanted);
/// Refuses a tensor of more elements than any machine could hold, before somebody multiplies its dimensions.
void expect_countable(const LayerImpl& layer, const Shape& shape, const char* what);
/// 0 <= result < rank. Throws Error(kUsage).
int canonical_axis(const LayerImpl& layer, int axis, int rank);

}  // namespace millpond::nn
