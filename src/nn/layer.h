// LayerImpl: what a Layer handle points to. A new layer is a struct with three functions and a line that declares it:
//
//   struct ScaleImpl final : LayerImpl {
//     Initializer init = "ones";
//     Weight gain;
//     ScaleImpl() = default;
//     explicit ScaleImpl(Initializer i) : init(i) {}
//     void options(Describer& d) override { d.option("gain_initializer", init); }
//     void build(std::span<const TensorType> x) override { gain = add_weight("gain", {x[0].shape.back()}, init); }
//     Values call(CallContext& c, std::span<const Value> x) override { return ops::multiply(c.builder(), x[0], c.read(gain)); }
//   };
//   void declare_scale(LayerClasses& all) { all.add<ScaleImpl>("Scale"); }
//   Scale::Scale(Initializer gain, std::string name) : Layer(make_layer<ScaleImpl>("Scale", std::move(name), std::move(gain))) {}
//
// Types and values carry the batch in front. In the types that build() gets, dimensions that the model leaves to its data
// are None, and a weight cannot have such a one (known_dimension); values always have numbers.
#pragma once
#include <functional>
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

/// What a call of a layer gives: one value, or several.
struct Values : std::vector<Value> {
  Values(Value one) : std::vector<Value>{one} {}
  Values(std::initializer_list<Value> many) : std::vector<Value>(many) {}
  Values(std::vector<Value> many) : std::vector<Value>(std::move(many)) {}
};

/// A weight: its place in memory once a model needs it, and how it is filled then.
struct WeightState {
  std::string name;   // "kernel"
  std::string group;  // of a layer inside the layer: "query"; otherwise empty
  std::string owner;  // the layer's name; of a user's own variable: empty
  bool trainable = true;
  Initializer initializer;
  uint64_t seed = 0;  // drawn when the weight was made, so that the order of making, not of use, decides
  runtime::Variable variable;
  std::optional<Shape> matrix = {};  // [inputs, outputs] as an initializer counts them, where the shape does not tell
  std::function<void(Tensor&)> then = {};  // what is done to the values behind the initializer

  /// "query/kernel"
  std::string path() const { return group.empty() ? name : group + "/" + name; }
};
using Weight = std::shared_ptr<WeightState>;

struct LayerImpl;

/// The state of one trace: what a layer may use while it says what it computes.
class CallContext {
 public:
  CallContext(Builder& b, bool training, runtime::Variable* counter = nullptr)
      : builder_(b), training_(training), counter_(counter) {}

  Builder& builder() { return builder_; }
  /// What the layer at hand computes in.
  DType compute() const { return compute_; }
  /// While it lives, the layer computes in another type (statistics of half types in float32).
  class Computing {
   public:
    Computing(CallContext& c, DType type) : context_(c), before_(c.compute_) { c.compute_ = type; }
    ~Computing() { context_.compute_ = before_; }
    Computing(const Computing&) = delete;

   private:
    CallContext& context_;
    DType before_;
  };
  bool training() const { return call_.training.value_or(training_); }
  const CallOptions& options() const { return call_; }

  /// The weight as it is before the step, in the type that the layer computes in.
  Value read(const Weight& w);
  /// In its own type.
  Value stored(const Weight& w);
  /// What the weight holds after the step (moving averages), cast to its type. A later call in the same trace reads
  /// this.
  void assign(const Weight& w, Value value);
  /// int32 scalar, different in every step: the source of a layer's randomness.
  Value counter();
  /// Which steps of a sequence count: bool [batch, steps]; null where all do. Layers that work step by step, element by
  /// element, hand it on (LayerImpl::keeps_mask); others look at it and decide what their results have.
  Value mask_of(Value v) const;
  void set_mask(Value v, Value mask);
  /// The layer's results, with the masks that it hands on. A call is traced, and tried, by this alone.
  std::vector<Value> call(LayerImpl& layer, const std::vector<Value>& arguments, const CallOptions& options);
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
  Builder& builder_;
  bool training_;
  DType compute_ = DType::kFloat32;
  CallOptions call_;
  runtime::Variable* counter_;  // of the model; null while only shapes are wanted
  Value counter_value_;
  std::unordered_map<const WeightState*, Value> values_;
  std::unordered_map<Value, Value, graph::ValueHash> masks_;
  std::vector<Limit> limits_;
  std::vector<Assignment> assignments_;
};

struct LayerImpl : Described {
  std::string name;
  std::string type;  // Keras's class name
  bool trainable = true;
  DTypePolicy policy = dtype_policy();
  bool built = false;
  int calls = 0;                          // so far: each call knows its number
  std::shared_ptr<void> eager = nullptr;  // the programs of calls on values (eager/call.cc), which go with the layer

  /// What all layers have, then this layer's own.
  void describe(Describer& d) override;
  virtual void options(Describer&) {}
  /// Of several tensors of a call, those behind the first are this argument of Keras's, as a list; empty: they are not.
  virtual std::string_view rest_argument() const { return {}; }
  /// What the layer's own options add to those of every call.
  virtual void adjust(CallOptions&) const {}
  /// Several tensors are arguments of their own in Keras, not one list.
  virtual bool takes_arguments() const { return false; }
  /// Dense "head"
  virtual std::string who() const;

  /// What it gives counts where what it is called on does: the mask of the first operand that has one is handed on.
  virtual bool keeps_mask() const { return false; }
  /// Its result has a mask of its own: what in its input equals this number does not count.
  virtual std::optional<double> masks_value() const { return {}; }
  /// Keras calls it with the masks of its operands, so that the operators that make these belong to its graph of layers.
  virtual bool takes_masks(size_t /*operands*/) const { return false; }
  /// How many of Keras's operators lie between the mask of a result and that of operand `i`, and the operand itself; 0:
  /// it is handed on, or not read.
  struct MaskOperators {
    int mask = 0, operand = 0;
  };
  virtual MaskOperators mask_operators(size_t /*i*/, size_t /*operands*/, bool /*masked*/) const { return {}; }
  /// Makes the weights; called once, before the first call.
  virtual void build(std::span<const TensorType>) {}
  virtual Values call(CallContext& c, std::span<const Value> inputs) = 0;
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

/// What clear_session() calls: eager tensors give back what is idle.
void on_clear_session(void (*f)());

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
/// Writes the first values of a weight that has its place.
void fill(WeightState& weight);

/// In the type that the layer computes in.
Value as_float(CallContext& c, Value x);
/// The layer's call on inputs of its own type: floating ones are cast first, as Keras's autocast does, and
/// keep their masks.
Values call_in_policy(LayerImpl& layer, CallContext& c, std::vector<Value> inputs);
/// The dimension of x along `axis`, which counts the batch, for a weight of that size. Throws Error(kShape) where it is
/// None.
int64_t known_dimension(const LayerImpl& layer, const TensorType& x, int axis);
/// Throws Error(kShape) unless x has `rank` dimensions beside the batch.
void expect_rank(const LayerImpl& layer, const TensorType& x, int rank, const char* wanted);
/// Refuses a tensor of more elements than any machine could hold, before somebody multiplies its dimensions.
void expect_countable(const LayerImpl& layer, const Shape& shape, const char* what);
/// 0 <= result < rank. Throws Error(kUsage).
int canonical_axis(const LayerImpl& layer, int axis, int rank);

}  // namespace millpond::nn
