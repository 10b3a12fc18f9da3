// extend: layers, losses, metrics and operators of your own, written with the public headers alone.
//
//   namespace mx = millpond::extend;
//   struct Scale : mx::OwnLayer {                              // y = x * gain
//     mx::Weight gain;
//     void build(mx::Build& b, std::span<const mx::Type> x) override {
//       gain = b.add_weight("gain", {x[0].shape.back()}, "ones");
//     }
//     mx::Values call(mx::Call& c, std::span<const mx::Value> x) override { return x[0] * c.read(gain); }
//   };
//   Sequential model{Input({16}), mx::own_layer<Scale>("scale"), Dense(1)};
//
// What you write is traced, not run: a Value stands for a tensor of the step and has a shape and a dtype, never data.
// Gradients follow from the operators; nothing here has a backward but an operator with a kernel of its own. Memory is
// planned with everything else, under the layer's name. Types and values carry the batch in front.
//
// docs/extending.md goes through all of it. Bad use is refused with the name of your class: where that costs nothing
// always, and in debug builds also what a kernel writes outside of its results.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "millpond/initializers.h"
#include "millpond/layers/layer.h"
#include "millpond/losses.h"
#include "millpond/metrics.h"
#include "millpond/tensor.h"

namespace millpond {

namespace graph {
class Builder;
class Node;
}  // namespace graph
namespace nn {
class CallContext;
struct LayerImpl;
struct WeightState;
}  // namespace nn

namespace extend {

/// Dtype and shape of a value.
struct Type {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool operator==(const Type&) const = default;
};

/// A value of the step that is being traced. Good while the function that got or made it runs.
class Value {
 public:
  Value() = default;
  Value(graph::Builder& builder, graph::Node* node, int output) : builder_(&builder), node_(node), output_(output) {}
  explicit operator bool() const { return node_ != nullptr; }
  const Shape& shape() const;
  DType dtype() const;
  Type type() const { return {dtype(), shape()}; }

  graph::Builder& builder() const { return *builder_; }
  graph::Node* node() const { return node_; }
  int output() const { return output_; }

 private:
  graph::Builder* builder_ = nullptr;
  graph::Node* node_ = nullptr;
  int output_ = 0;
};

/// One value, or several.
struct Values : std::vector<Value> {
  Values() = default;
  Values(Value one) : std::vector<Value>{one} {}
  Values(std::initializer_list<Value> many) : std::vector<Value>(many) {}
  Values(std::vector<Value> many) : std::vector<Value>(std::move(many)) {}
};

// Operators on values. Shapes broadcast as in NumPy; both operands have one dtype. Each throws Error(kShape) or
// (kDType) with all sizes.
Value operator+(Value x, Value y);
Value operator-(Value x, Value y);
Value operator*(Value x, Value y);
Value operator/(Value x, Value y);
Value operator-(Value x);
Value operator+(Value x, double y);
Value operator-(Value x, double y);
Value operator*(Value x, double y);
Value operator/(Value x, double y);
inline Value operator+(double x, Value y) { return y + x; }
inline Value operator*(double x, Value y) { return y * x; }
Value operator-(double x, Value y);
Value operator/(double x, Value y);
Value maximum(Value x, Value y);
Value minimum(Value x, Value y);
Value power(Value x, Value y);
Value greater(Value x, Value y);  // bool, as the next two
Value greater_equal(Value x, Value y);
Value equal(Value x, Value y);
Value select(Value condition, Value x, Value y);
Value exp(Value x);
Value log(Value x);
Value log1p(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value square(Value x);
Value abs(Value x);
Value sign(Value x);
Value tanh(Value x);
Value sigmoid(Value x);
Value relu(Value x);
Value erf(Value x);
Value cast(Value x, DType dtype);
/// Over the last two dimensions, either operand transposed.
Value matmul(Value x, Value y, bool transpose_x = false, bool transpose_y = false);
/// Over these axes, or all; negative ones count from the end.
Value sum(Value x, std::vector<int> axes = {}, bool keepdims = false);
Value mean(Value x, std::vector<int> axes = {}, bool keepdims = false);
Value max(Value x, std::vector<int> axes = {}, bool keepdims = false);
Value softmax(Value x);  // along the last axis
Value reshape(Value x, Shape shape);
Value transpose(Value x, std::vector<int> order);
Value broadcast_to(Value x, Shape shape);
Value concatenate(const std::vector<Value>& xs, int axis);
/// Elements [start, start + size) along every dimension.
Value slice(Value x, std::vector<int64_t> starts, Shape sizes);
/// Rows of a table, by integers.
Value gather(Value table, Value indices);

/// A body run for each element of sequences [length, ...], with values carried from step to step. `step` gets carries,
/// elements and shared, and returns carries and what is stacked over the steps; so does scan. It has a gradient; its
/// arena is that of one step.
std::vector<Value> scan(std::span<const Value> carries, std::span<const Value> sequences, std::span<const Value> shared,
                        const std::function<Values(std::span<const Value>)>& step, bool reverse = false);
/// One of two bodies, as a bool says when the step runs.
std::vector<Value> cond(Value which, std::span<const Value> operands,
                        const std::function<Values(std::span<const Value>)>& yes,
                        const std::function<Values(std::span<const Value>)>& no);
/// As long as `condition` gives true. No gradient.
std::vector<Value> while_loop(std::span<const Value> carries, std::span<const Value> shared,
                              const std::function<Value(std::span<const Value>)>& condition,
                              const std::function<Values(std::span<const Value>)>& step, int64_t most_steps = 0);

// ---- layers

/// A weight or a state of a layer; copies are the same one.
class Weight {
 public:
  Weight() = default;
  explicit Weight(std::shared_ptr<nn::WeightState> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }
  const std::shared_ptr<nn::WeightState>& state() const { return state_; }

 private:
  std::shared_ptr<nn::WeightState> state_;
};

/// What a layer may do while it is built, once, before its first call.
class Build {
 public:
  explicit Build(nn::LayerImpl& layer) : layer_(layer) {}
  const std::string& name() const;
  /// Account weights/<layer>/<name>. A state (moving average, counter) is not trainable. Throws Error(kUsage) for a
  /// second one of this name.
  Weight add_weight(std::string name, Shape shape, const Initializer& initializer, bool trainable = true);

 private:
  nn::LayerImpl& layer_;
};

/// What a layer may use while it says what it computes.
class Call {
 public:
  explicit Call(nn::CallContext& context, nn::LayerImpl& layer) : context_(context), layer_(layer) {}
  bool training() const;
  /// The weight as it is before the step.
  Value read(const Weight& weight);
  /// What a state holds after the step. A later call in the same step reads this.
  void assign(const Weight& weight, Value value);
  /// int32 scalar, different in every step: for what is random.
  Value counter();
  Value scalar(DType dtype, double value);
  Value constant(Tensor values);
  /// Of a sequence: which steps count, bool [batch, steps]; empty: all.
  Value mask_of(Value x) const;
  void set_mask(Value x, Value mask);
  /// If `index` is an input of the model, its values must lie in [0, count): refused when a batch is staged.
  void limit(Value index, int64_t count);

 private:
  nn::CallContext& context_;
  nn::LayerImpl& layer_;
};

class OwnLayer {
 public:
  virtual ~OwnLayer() = default;
  virtual void build(Build&, std::span<const Type>) {}
  virtual Values call(Call& c, std::span<const Value> inputs) = 0;
  /// What it gives counts where what it is called on does.
  virtual bool keeps_mask() const { return false; }
};
/// A layer made of yours, named automatically after your class if no name is given. Several tensors are its results
/// through Layer::call_all.
Layer make_layer(std::shared_ptr<OwnLayer> own, std::string name = "");
template <class Own, class... Arguments>
Layer own_layer(std::string name = "", Arguments&&... arguments) {
  return make_layer(std::make_shared<Own>(std::forward<Arguments>(arguments)...), std::move(name));
}

// ---- losses and metrics

class OwnLoss {
 public:
  virtual ~OwnLoss() = default;
  /// One number for each sample (and position); their mean is the loss.
  virtual Value values(Value y, Value prediction) const = 0;
};
Loss make_loss(std::shared_ptr<const OwnLoss> own, std::string name = "");
template <class Own, class... Arguments>
Loss own_loss(std::string name = "", Arguments&&... arguments) {
  return make_loss(std::make_shared<Own>(std::forward<Arguments>(arguments)...), std::move(name));
}

/// Its value over an epoch is the mean of one number for each sample (and position).
class OwnMetric {
 public:
  virtual ~OwnMetric() = default;
  virtual Value values(Value y, Value prediction) const = 0;
};
/// Its value is a function of what was counted over the epoch.
class OwnCountingMetric {
 public:
  struct Count {
    std::string name;
    Type type;  // int64 for what is counted one by one
  };
  virtual ~OwnCountingMetric() = default;
  virtual std::vector<Count> counts() const = 0;  // zeros when an epoch begins
  virtual std::vector<Value> update(std::span<const Value> before, Value y, Value prediction) const = 0;
  virtual double result(std::span<const Tensor> counts) const = 0;
};
Metric make_metric(std::shared_ptr<const OwnMetric> own, std::string name = "");
Metric make_metric(std::shared_ptr<const OwnCountingMetric> own, std::string name = "");
template <class Own, class... Arguments>
Metric own_metric(std::string name = "", Arguments&&... arguments) {
  return make_metric(std::make_shared<Own>(std::forward<Arguments>(arguments)...), std::move(name));
}

// ---- operators with a kernel

/// An operand or result of a kernel: memory of the step, on the host.
struct Array {
  void* data = nullptr;
  Type type;
  template <class T>
  std::span<T> values() const {
    return {static_cast<T*>(data), size_t(type.shape.size())};
  }
};

/// Objects are not changed once they are used, and may be used by several threads at once.
class OwnOperator {
 public:
  virtual ~OwnOperator() = default;
  /// In plans and messages. Not that of an operator of Millpond's.
  virtual std::string name() const = 0;
  /// Everything beside operands that tells two objects of this class apart: two with equal text compute the same.
  virtual std::string attributes() const { return {}; }
  /// Types of the results. Throw Error(kShape) for operands that do not fit.
  virtual std::vector<Type> infer(std::span<const Type> inputs) const = 0;
  /// Computes the results. It may not throw, keep anything, or write anywhere else.
  virtual void compute(std::span<const Array> inputs, std::span<const Array> outputs) const = 0;
  /// The gradient for each operand (an empty Value: none), given that of each result (an empty Value: zero), as
  /// operators. The default refuses.
  virtual std::vector<Value> gradient(std::span<const Value> inputs, std::span<const Value> outputs,
                                      std::span<const Value> douts) const;
};
/// Element by element: all operands and the result are float32 of one shape. Large ones are cut into pieces for
/// threads.
class OwnElementwise : public OwnOperator {
 public:
  std::vector<Type> infer(std::span<const Type> inputs) const final;
  void compute(std::span<const Array> inputs, std::span<const Array> outputs) const final;
  /// n elements of each.
  virtual void apply(std::span<const float* const> inputs, float* output, int64_t n) const = 0;
};
/// Its results on these values.
std::vector<Value> apply(std::shared_ptr<const OwnOperator> own, std::vector<Value> inputs);

}  // namespace extend
}  // namespace millpond
