// What millpond/extend.h promises, on top of the layers, losses, metrics and operators that Millpond itself is made of.
#include "millpond/extend.h"

#include <set>

#include "base/format.h"
#include "nn/layer.h"
#include "nn/loss.h"
#include "nn/metric.h"
#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/cast.h"
#include "ops/concatenate.h"
#include "ops/cond.h"
#include "ops/gather.h"
#include "ops/matmul.h"
#include "ops/own.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scan.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"
#include "ops/while_loop.h"

namespace millpond::extend {
namespace {

graph::Value inside(Value v) {
  if (!v) throw Error(Code::kUsage, "extend: an operator is applied to an empty Value");
  return {v.node(), v.output()};
}
std::vector<graph::Value> inside(std::span<const Value> values) {
  std::vector<graph::Value> all;
  for (const Value& v : values) all.push_back(inside(v));
  return all;
}
Value outside(graph::Builder& b, graph::Value v) { return v ? Value(b, v.node, v.output) : Value(); }
Values outside(graph::Builder& b, std::span<const graph::Value> values) {
  Values all;
  for (graph::Value v : values) all.push_back(outside(b, v));
  return all;
}
Value like(Value x, graph::Value made) { return outside(x.builder(), made); }

// Keras's way to name what a user has not: my_layer of MyLayer.
std::string last_part(const std::string& class_name) {
  const size_t at = class_name.rfind("::");
  return at == std::string::npos ? class_name : class_name.substr(at + 2);
}

}  // namespace

#define MP_TWO(sign, name)                                                                                \
  Value operator sign(Value x, Value y) { return like(x, ops::name(x.builder(), inside(x), inside(y))); } \
  Value operator sign(Value x, double y) {                                                                \
    return like(x, ops::binary(x.builder(), ops::Function::k_##name, inside(x), y));                      \
  }
MP_TWO(+, add)
MP_TWO(-, subtract)
MP_TWO(*, multiply)
MP_TWO(/, divide)
#undef MP_TWO
Value operator-(Value x) { return like(x, ops::negate(x.builder(), inside(x))); }
Value operator-(double x, Value y) {
  return like(y, ops::subtract(y.builder(), y.builder().scalar(y.dtype(), x), inside(y)));
}
Value operator/(double x, Value y) {
  return like(y, ops::divide(y.builder(), y.builder().scalar(y.dtype(), x), inside(y)));
}
#define MP_NAMED(name) \
  Value name(Value x, Value y) { return like(x, ops::name(x.builder(), inside(x), inside(y))); }
MP_NAMED(maximum)
MP_NAMED(minimum)
MP_NAMED(power)
MP_NAMED(greater)
MP_NAMED(greater_equal)
MP_NAMED(equal)
#undef MP_NAMED
#define MP_NAMED(name) \
  Value name(Value x) { return like(x, ops::name(x.builder(), inside(x))); }
MP_NAMED(exp)
MP_NAMED(log)
MP_NAMED(log1p)
MP_NAMED(sqrt)
MP_NAMED(rsqrt)
MP_NAMED(square)
MP_NAMED(abs)
MP_NAMED(sign)
MP_NAMED(tanh)
MP_NAMED(sigmoid)
MP_NAMED(relu)
MP_NAMED(erf)
MP_NAMED(softmax)
#undef MP_NAMED
Value select(Value condition, Value x, Value y) {
  return like(x, ops::select(x.builder(), inside(condition), inside(x), inside(y)));
}
Value cast(Value x, DType dtype) { return like(x, ops::cast(x.builder(), inside(x), dtype)); }
Value matmul(Value x, Value y, bool transpose_x, bool transpose_y) {
  return like(x, ops::matmul(x.builder(), inside(x), inside(y), transpose_x, transpose_y));
}
Value sum(Value x, std::vector<int> axes, bool keepdims) {
  return like(x, ops::sum(x.builder(), inside(x), std::move(axes), keepdims));
}
Value mean(Value x, std::vector<int> axes, bool keepdims) {
  return like(x, ops::mean(x.builder(), inside(x), std::move(axes), keepdims));
}
Value max(Value x, std::vector<int> axes, bool keepdims) {
  return like(x, ops::max(x.builder(), inside(x), std::move(axes), keepdims));
}
Value reshape(Value x, Shape shape) { return like(x, ops::reshape(x.builder(), inside(x), shape)); }
Value transpose(Value x, std::vector<int> order) {
  return like(x, ops::transpose(x.builder(), inside(x), std::move(order)));
}
Value broadcast_to(Value x, Shape shape) { return like(x, ops::broadcast_to(x.builder(), inside(x), shape)); }
Value concatenate(const std::vector<Value>& xs, int axis) {
  if (xs.empty()) throw Error(Code::kUsage, "extend: concatenate is applied to nothing");
  return like(xs[0], ops::concatenate(xs[0].builder(), inside(xs), axis < 0 ? axis + xs[0].shape().rank() : axis));
}
Value slice(Value x, std::vector<int64_t> starts, Shape sizes) {
  return like(x, ops::slice(x.builder(), inside(x), std::move(starts), sizes));
}
Value gather(Value table, Value indices) {
  return like(table, ops::gather(table.builder(), inside(table), inside(indices)));
}

namespace {

using Write = std::function<Values(std::span<const Value>)>;

ops::Write body_of(const Write& write) {
  return [&write](graph::Builder& b, std::span<const graph::Value> in) { return inside(write(outside(b, in))); };
}
graph::Builder& builder_of(std::initializer_list<std::span<const Value>> lists, const char* what) {
  for (const auto& list : lists)
    for (const Value& v : list)
      if (v) return v.builder();
  throw Error(Code::kUsage, format("extend: {} is given no values", what));
}

}  // namespace

std::vector<Value> scan(std::span<const Value> carries, std::span<const Value> sequences, std::span<const Value> shared,
                        const Write& step, bool reverse) {
  graph::Builder& b = builder_of({carries, sequences, shared}, "scan");
  return outside(b,
                 ops::scan(b, inside(carries), inside(sequences), inside(shared), body_of(step), {.reverse = reverse}));
}
std::vector<Value> cond(Value which, std::span<const Value> operands, const Write& yes, const Write& no) {
  graph::Builder& b = which.builder();
  return outside(b, ops::cond(b, inside(which), inside(operands), body_of(yes), body_of(no)));
}
std::vector<Value> while_loop(std::span<const Value> carries, std::span<const Value> shared,
                              const std::function<Value(std::span<const Value>)>& condition, const Write& step,
                              int64_t most_steps) {
  graph::Builder& b = builder_of({carries, shared}, "while_loop");
  const Write asked = [&](std::span<const Value> in) -> Values { return condition(in); };
  return outside(b, ops::while_loop(b, inside(carries), inside(shared), body_of(asked), body_of(step), most_steps));
}

// ---- layers

namespace {

struct OwnLayerImpl final : nn::LayerImpl {
  std::shared_ptr<OwnLayer> own;
  std::string class_name;
  std::set<std::string> names;  // of weights
  explicit OwnLayerImpl(std::shared_ptr<OwnLayer> o) : own(std::move(o)), class_name(ops::class_name(typeid(*own))) {}

  using nn::LayerImpl::add_weight;
  bool keeps_mask() const override { return own->keeps_mask(); }
  void build(std::span<const nn::TensorType> inputs) override {
    std::vector<Type> types;
    for (const nn::TensorType& t : inputs) types.push_back({t.dtype, t.shape});
    Build b(*this);
    own->build(b, types);
  }
  nn::Values call(nn::CallContext& c, std::span<const nn::Value> xs) override {
    Call context(c, *this);
    const Values made = own->call(context, outside(c.builder(), xs));
    if (made.empty()) throw Error(Code::kUsage, format("{}: call gives nothing", described()));
    for (size_t i = 0; i < made.size(); ++i) {
      if (!made[i]) throw Error(Code::kUsage, format("{}: result {} of call is an empty Value", described(), i));
      check_shape(i, made[i], xs[0].shape()[0]);
    }
    return inside(made);
  }
  std::string described() const { return format("layer \"{}\" (class {})", name, class_name); }
  std::string who() const override { return described(); }

 private:
  void check_shape(size_t i, Value v, int64_t batch) const {
    const Shape& s = v.shape();
    if (s.rank() == 0 || s[0] != batch)
      throw Error(Code::kShape,
                  format("{}: result {} of call has the shape {} for a batch of {}", described(), i, s, batch))
          .hint("the batch stands in front of every result");
  }
};

OwnLayerImpl& own_of(nn::LayerImpl& layer) { return static_cast<OwnLayerImpl&>(layer); }

}  // namespace

const std::string& Build::name() const { return layer_.name; }
Weight Build::add_weight(std::string name, Shape shape, const Initializer& initializer, bool trainable) {
  OwnLayerImpl& layer = own_of(layer_);
  if (name.empty()) throw Error(Code::kUsage, format("{}: a weight has no name", layer.described()));
  if (!layer.names.insert(name).second)
    throw Error(Code::kUsage, format("{}: the weight \"{}\" is made twice", layer.described(), name))
        .hint("give each its own name");
  return Weight(layer.add_weight(std::move(name), shape, initializer, trainable));
}

bool Call::training() const { return context_.training(); }
Value Call::read(const Weight& weight) {
  if (!weight)
    throw Error(Code::kUsage, format("{}: a weight is read that was never made", own_of(layer_).described()))
        .hint("make it in build() with add_weight");
  return outside(context_.builder(), context_.read(weight.state()));
}
void Call::assign(const Weight& weight, Value value) {
  if (!weight || weight.state()->variable.type() != graph::TensorType{value.dtype(), value.shape()})
    throw Error(Code::kShape,
                weight ? format("{}: the weight \"{}\" is {}, but is assigned {}", own_of(layer_).described(),
                                weight.state()->name, to_string(weight.state()->variable.type()),
                                to_string(graph::TensorType{value.dtype(), value.shape()}))
                       : format("{}: a weight is assigned that was never made", own_of(layer_).described()));
  if (weight.state()->trainable)
    throw Error(Code::kUsage, format("{}: the weight \"{}\" is trainable and may not be assigned",
                                     own_of(layer_).described(), weight.state()->name))
        .hint("add it with trainable = false");
  context_.assign(weight.state(), inside(value));
}
Value Call::counter() { return outside(context_.builder(), context_.counter()); }
Value Call::scalar(DType dtype, double value) {
  return outside(context_.builder(), context_.builder().scalar(dtype, value));
}
Value Call::constant(Tensor values) {
  return outside(context_.builder(), context_.builder().constant(std::move(values)));
}
Value Call::mask_of(Value x) const { return outside(context_.builder(), context_.mask_of(inside(x))); }
void Call::set_mask(Value x, Value mask) { context_.set_mask(inside(x), mask ? inside(mask) : graph::Value{}); }
void Call::limit(Value index, int64_t count) { context_.limit(inside(index), count, layer_.name); }

Layer make_layer(std::shared_ptr<OwnLayer> own, std::string name) {
  if (!own) throw Error(Code::kUsage, "extend: a layer is wanted, but there is none");
  const std::string type = last_part(ops::class_name(typeid(*own)));
  return Layer(nn::make_layer<OwnLayerImpl>(type, std::move(name), std::move(own)));
}

// ---- losses and metrics

namespace {

struct OwnLossImpl final : nn::LossImpl {
  std::shared_ptr<const OwnLoss> own;
  std::string class_name;
  explicit OwnLossImpl(std::shared_ptr<const OwnLoss> o)
      : own(std::move(o)), class_name(ops::class_name(typeid(*own))) {}
  nn::Value values(nn::Builder& b, nn::Value y, nn::Value prediction) const override {
    const Value v = own->values(outside(b, y), outside(b, prediction));
    if (!v || !is_floating(v.dtype()))
      throw Error(Code::kUsage, format("loss \"{}\" (class {}): values gives {}", name, class_name,
                                       v ? format("whole numbers, {}", v.dtype()) : "an empty Value"))
          .hint("it must give one floating number for each sample");
    return inside(v);
  }
};

void expect_value(Value v, const std::string& name, const std::string& class_name) {
  if (!v) throw Error(Code::kUsage, format("metric \"{}\" (class {}): values gives an empty Value", name, class_name));
}

struct OwnMeanImpl final : nn::MeanMetric {
  std::shared_ptr<const OwnMetric> own;
  explicit OwnMeanImpl(std::shared_ptr<const OwnMetric> o) : own(std::move(o)) {}
  nn::Value values(nn::Builder& b, nn::Value y, nn::Value prediction) const override {
    const Value v = own->values(outside(b, y), outside(b, prediction));
    expect_value(v, name, ops::class_name(typeid(*own)));
    return v.dtype() == DType::kFloat32 ? inside(v) : ops::cast(b, inside(v), DType::kFloat32);
  }
};

struct OwnCountingImpl final : nn::CountingMetric {
  std::shared_ptr<const OwnCountingMetric> own;
  explicit OwnCountingImpl(std::shared_ptr<const OwnCountingMetric> o) : own(std::move(o)) {}
  std::vector<Count> counts() const override {
    std::vector<Count> all;
    std::set<std::string> names;
    for (const OwnCountingMetric::Count& c : own->counts()) {
      if (!names.insert(c.name).second)
        throw Error(Code::kUsage, format("metric \"{}\" (class {}): the count \"{}\" is made twice", name,
                                         ops::class_name(typeid(*own)), c.name));
      all.push_back({c.name, {c.type.dtype, c.type.shape}});
    }
    return all;
  }
  std::vector<nn::Value> update(nn::Builder& b, std::span<const nn::Value> before, nn::Value y,
                                nn::Value prediction) const override {
    const std::vector<Value> after = own->update(outside(b, before), outside(b, y), outside(b, prediction));
    if (after.size() != before.size())
      throw Error(Code::kUsage, format("metric \"{}\" (class {}): update gives {} values for {} counts", name,
                                       ops::class_name(typeid(*own)), after.size(), before.size()));
    for (size_t i = 0; i < after.size(); ++i)
      if (!after[i] || inside(after[i]).type() != before[i].type())
        throw Error(Code::kShape, format("metric \"{}\" (class {}): count {} is {}, but update gives {}", name,
                                         ops::class_name(typeid(*own)), i, to_string(before[i].type()),
                                         after[i] ? to_string(inside(after[i]).type()) : "an empty Value"));
    return inside(after);
  }
  double result(std::span<const Tensor> counts) const override { return own->result(counts); }
};

template <class Own>
std::string name_or(const Own& own, std::string name) {
  return name.empty() ? nn::snake_case(last_part(ops::class_name(typeid(own)))) : std::move(name);
}

}  // namespace

Loss make_loss(std::shared_ptr<const OwnLoss> own, std::string name) {
  if (!own) throw Error(Code::kUsage, "extend: a loss is wanted, but there is none");
  auto impl = std::make_shared<OwnLossImpl>(own);
  impl->name = name_or(*own, std::move(name));
  impl->type = last_part(impl->class_name);
  return Loss(std::shared_ptr<const nn::LossImpl>(std::move(impl)));
}
Metric make_metric(std::shared_ptr<const OwnMetric> own, std::string name) {
  if (!own) throw Error(Code::kUsage, "extend: a metric is wanted, but there is none");
  std::string known = name_or(*own, std::move(name));
  return Metric(nn::make_metric<OwnMeanImpl>(std::move(known), std::move(own)));
}
Metric make_metric(std::shared_ptr<const OwnCountingMetric> own, std::string name) {
  if (!own) throw Error(Code::kUsage, "extend: a metric is wanted, but there is none");
  std::string known = name_or(*own, std::move(name));
  return Metric(nn::make_metric<OwnCountingImpl>(std::move(known), std::move(own)));
}

std::vector<Value> apply(std::shared_ptr<const OwnOperator> own, std::vector<Value> inputs) {
  graph::Builder& b = builder_of({inputs}, "an operator");
  return outside(b, b.add_all(std::make_shared<ops::Own>(std::move(own)), inside(inputs)));
}

}  // namespace millpond::extend
