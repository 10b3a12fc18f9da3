#include "millpond/layers/recurrent.h"

#include "base/format.h"
#include "base/seed.h"
#include "nn/activate.h"
#include "nn/classes.h"
#include "ops/binary.h"
#include "ops/broadcast_to.h"
#include "ops/cast.h"
#include "ops/dropout.h"
#include "ops/gather.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scan.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/transpose.h"
#include "ops/unary.h"

namespace millpond {
namespace nn {
namespace {

struct LSTMImpl final : LayerImpl {
  int64_t units;
  LSTMOptions o;
  uint64_t salt = 0;
  Weight kernel, recurrent, bias;
  explicit LSTMImpl(int64_t n = 0, LSTMOptions options = {}) : units(n), o(std::move(options)) {}
  void options(Describer& d) override {
    d.option("return_sequences", o.return_sequences);
    d.option("return_state", o.return_state);
    d.option("go_backwards", o.go_backwards);
    d.fixed("stateful", "false");
    d.fixed("unroll", "false");
    d.fixed("zero_output_for_mask", "false");
    d.required("units", units, at_least(1));
    d.option("activation", o.activation);
    d.option("recurrent_activation", o.recurrent_activation);
    d.option("use_bias", o.use_bias);
    d.option("kernel_initializer", o.kernel_initializer);
    d.option("recurrent_initializer", o.recurrent_initializer);
    d.option("bias_initializer", o.bias_initializer);
    d.option("unit_forget_bias", o.unit_forget_bias);
    d.none({"kernel_regularizer", "recurrent_regularizer", "bias_regularizer", "activity_regularizer",
            "kernel_constraint", "recurrent_constraint", "bias_constraint"});
    d.option("dropout", o.dropout, between(0, 1));
    d.option("recurrent_dropout", o.recurrent_dropout, between(0, 1));
    d.option("seed", o.seed);
  }
  void settle() override { salt = o.seed ? *o.seed : draw_seed(); }
  std::string_view rest_argument() const override { return "initial_state"; }

  bool takes_masks(size_t operands) const override { return operands == 1; }
  void build(std::span<const TensorType> x) override {
    expect_rank(*this, x[0], 2, "sequences [length, width]");
    kernel =
        add_weight("kernel", {known_dimension(*this, x[0], -1), 4 * units}, o.kernel_initializer, true, "lstm_cell");
    recurrent = add_weight("recurrent_kernel", {units, 4 * units}, o.recurrent_initializer, true, "lstm_cell");
    if (!o.use_bias) return;
    bias = add_weight("bias", {4 * units}, o.bias_initializer, true, "lstm_cell");
    if (o.unit_forget_bias)
      bias->then = [n = units](Tensor& values) {
        for (int64_t i = n; i < 2 * n; ++i) values.values<float>()[size_t(i)] = 1;
      };
  }

  void check(std::span<const Value> x) const {
    if (x.size() != 1 && x.size() != 3)
      throw Error(Code::kUsage, format("LSTM \"{}\" is called on {} tensors", name, x.size()))
          .hint("call it on a sequence, or on a sequence and two states");
    expect_rank(*this, x[0].type(), 2, "sequences [length, width]");
    const int64_t width = kernel->variable.type().shape[0];
    if (x[0].shape().back() != width)
      throw Error(Code::kShape, format("LSTM \"{}\": a step of {} has {} values, but the kernel is for {}", name,
                                       x[0].shape().slice(1, 3), x[0].shape().back(), width));
    if (x[0].shape()[1] == 0) throw Error(Code::kShape, format("LSTM \"{}\": the sequence has no steps", name));
    for (size_t i = 1; i < x.size(); ++i)
      if (x[i].shape() != Shape{x[0].shape()[0], units})
        throw Error(Code::kShape, format("LSTM \"{}\": a first state has the shape {}, but must have {}", name,
                                         x[i].shape().slice(1, x[i].shape().rank()), Shape{units}));
  }

  // What a step reads, in the order of a scan's operands.
  struct Plan {
    std::vector<Value> carries, sequences, shared;
    bool masked = false, biased = false, drops = false, drops_recurrent = false;
  };

  // Gates in Keras's order: input, forget, cell, output.
  std::vector<Value> step(Builder& b, const Plan& plan, std::span<const Value> in) const {
    size_t at = 0;
    const Value h = in[at++], c = in[at++];
    const Value before = plan.masked ? in[at++] : Value{};  // what the last step that counts gave
    Value x = in[at++];
    const Value counts = plan.masked ? in[at++] : Value{};
    const Value w = in[at++], u = in[at++];
    const Value add = plan.biased ? in[at++] : Value{};
    if (plan.drops) x = ops::multiply(b, x, in[at++]);
    const Value kept = plan.drops_recurrent ? ops::multiply(b, h, in[at++]) : h;
    Value z = ops::add(b, ops::matmul(b, x, w), ops::matmul(b, kept, u));
    if (add) z = ops::add(b, z, add);
    const auto gate = [&](int64_t k, ActivationFunction f) {
      return activate(b, f, ops::slice(b, z, {0, k * units}, {z.shape()[0], units}));
    };
    const Value i = gate(0, o.recurrent_activation), f = gate(1, o.recurrent_activation);
    const Value next = ops::add(b, ops::multiply(b, f, c), ops::multiply(b, i, gate(2, o.activation)));
    const Value y = ops::multiply(b, gate(3, o.recurrent_activation), activate(b, o.activation, next));
    if (!plan.masked) return o.return_sequences ? std::vector{y, next, y} : std::vector{y, next};
    const auto where = [&](Value fresh, Value old) { return ops::select(b, counts, fresh, old); };
    const Value out = where(y, before);
    std::vector<Value> all{where(y, h), where(next, c), out};
    if (o.return_sequences) all.push_back(out);
    return all;
  }

  Values call(CallContext& c, std::span<const Value> x) override {
    check(x);
    Builder& b = c.builder();
    const Value sequence = as_float(c, x[0]);
    const int64_t batch = sequence.shape()[0], width = sequence.shape()[2];
    const auto filled = [&](double value, Shape shape) {
      return ops::broadcast_to(b, b.scalar(sequence.dtype(), value), shape);
    };
    Plan plan;
    for (size_t i = 1; i < 3; ++i) plan.carries.push_back(x.size() > i ? as_float(c, x[i]) : filled(0, {batch, units}));
    plan.sequences = {ops::transpose(b, sequence, {1, 0, 2})};
    // Keras looks for a mask only where there is one tensor; called on first states too, an LSTM hands the mask on, but
    // counts every step.
    const Value mask = c.mask_of(x[0]);
    if (mask && x.size() == 1) {
      plan.masked = true;
      plan.carries.push_back(filled(0, {batch, units}));
      const Value steps = ops::transpose(b, mask, {1, 0});
      plan.sequences.push_back(ops::reshape(b, steps, {steps.shape()[0], batch, 1}));
    }
    plan.shared = {c.read(kernel), c.read(recurrent)};
    if (bias) plan.shared.push_back(c.read(bias)), plan.biased = true;
    // Which values are dropped is drawn once for a sequence, as in Keras.
    if (c.training() && o.dropout > 0)
      plan.shared.push_back(ops::dropout(b, filled(1, {batch, width}), c.counter(), o.dropout, salt)),
          plan.drops = true;
    if (c.training() && o.recurrent_dropout > 0)
      plan.shared.push_back(ops::dropout(b, filled(1, {batch, units}), c.counter(), o.recurrent_dropout, salt + 1)),
          plan.drops_recurrent = true;
    const std::vector<Value> out = ops::scan(
        b, plan.carries, plan.sequences, plan.shared,
        [&](Builder& body, std::span<const Value> in) { return step(body, plan, in); }, {.reverse = o.go_backwards});
    Values result = plan.masked ? out[2] : out[0];
    if (o.return_sequences) {
      // Backwards, the step that came first stands first, as in Keras; a stack lies in the order of the sequence.
      Value all = out.back();
      if (o.go_backwards) all = reversed(b, all);
      result[0] = ops::transpose(b, all, {1, 0, 2});
      if (mask && !o.go_backwards) c.set_mask(result[0], mask);
    }
    if (o.return_state) result.push_back(out[0]), result.push_back(out[1]);
    return result;
  }

  // The other way round along the first axis.
  static Value reversed(Builder& b, Value x) {
    Tensor order(DType::kInt32, {x.shape()[0]}, "constants");
    for (int64_t i = 0; i < x.shape()[0]; ++i) order.values<int32_t>()[size_t(i)] = int32_t(x.shape()[0] - 1 - i);
    const Value rows = ops::reshape(b, x, {x.shape()[0], x.shape().size() / x.shape()[0]});
    return ops::reshape(b, ops::gather(b, rows, b.constant(std::move(order), "order")), x.shape());
  }
};

struct MaskingImpl final : LayerImpl {
  double mask_value;
  explicit MaskingImpl(double v = 0) : mask_value(v) {}
  void options(Describer& d) override { d.option("mask_value", mask_value); }
  std::optional<double> masks_value() const override { return mask_value; }
  Values call(CallContext& c, std::span<const Value> x) override {
    expect_rank(*this, x[0].type(), 2, "sequences [length, width]");
    Builder& b = c.builder();
    const Value v = as_float(c, x[0]);
    const Value apart = ops::max(b, ops::abs(b, ops::add(b, v, -mask_value)), {-1}, true);  // of the value most unlike
    const Value counts = ops::greater(b, apart, b.scalar(v.dtype(), 0));
    const Value mask = ops::reshape(b, counts, v.shape().slice(0, 2));
    const Value y = ops::multiply(b, v, ops::cast(b, counts, v.dtype()));
    c.set_mask(y, mask);
    return y;
  }
};

}  // namespace

void declare_recurrent(LayerClasses& all) {
  all.add<LSTMImpl>("LSTM");
  all.add<MaskingImpl>("Masking");
}
}  // namespace nn

LSTM::LSTM(int64_t units, LSTMOptions options) : Layer(nullptr) {
  std::string name = options.name;
  impl_ = nn::make_layer<nn::LSTMImpl>("LSTM", std::move(name), units, std::move(options));
}
Masking::Masking(double mask_value, std::string name)
    : Layer(nn::make_layer<nn::MaskingImpl>("Masking", std::move(name), mask_value)) {}

}  // namespace millpond
