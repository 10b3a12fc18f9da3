#include "backend/cpu/expression.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cpu/lanes.h"
#include "base/assert.h"
#include "base/convert.h"
#include "base/random.h"
#include "base/with_type.h"
#include "ops/dropout.h"

namespace millpond::backend::cpu {

using ops::Collect;
using ops::Extent;
using ops::Function;

namespace {

constexpr int kMaxRefs = 160, kMaxExternals = 64, kMaxKeys = 8;
constexpr int64_t kSlotBudget = 16384;  // bytes of all slots together: half of a 32 KiB L1

Span join(Span a, Span b) {
  if (a == b || b == Span::kScalar) return a;
  return a == Span::kScalar ? b : Span::kFull;
}

double cost_of(int kind) {  // nanoseconds an element, data in L1
  switch (kind) {
    case kStep_exp:
      return 0.25;
    case kStep_log:
      return 0.35;
    case kStep_sigmoid:
    case kStep_erf:
      return 0.4;
    case kStep_log1p:
    case kStep_tanh:
      return 0.5;
    case kStep_sigmoid_cross_entropy:
      return 0.9;
    case kStep_power:
      return 12;
    case kStep_divide:
    case kStep_sqrt:
      return 0.12;
    case kStep_rsqrt:
      return 0.25;
    case kStep_dropout:
    case kStep_add_relu_dropout:
    case kStep_gate_dropout:
      return 0.25;
    default:
      return 0.06;
  }
}

}  // namespace

// Turns an expression into steps: what is dead goes, pairs become one step, registers get places.
class Preparation {
 public:
  Preparation(const ops::Expression& e, std::span<const TensorType> operands, std::span<const TensorType> results,
              Grid grid, bool epilogue)
      : e_(e), operands_(operands), results_(results), epilogue_(epilogue), k_(std::make_unique<ExpressionKernel>()) {
    k_->turned_ = grid.cols == 1 && grid.rows != 1;
    k_->grid_ = k_->turned_ ? Grid{1, grid.rows, grid.col_blocks, grid.row_blocks} : grid;
    by_column_ = k_->turned_;
  }

  std::unique_ptr<ExpressionKernel> run() {
    read_inputs();
    read_code();
    if (!read_results()) return nullptr;
    drop_dead();
    for (const Value& v : v_)
      if (v.needed) k_->widest_ = std::max(k_->widest_, lane_bytes(v.lanes));
    emit_tiny();
    if (!emit()) return nullptr;
    finish_layout();
    if (k_->refs_ > kMaxRefs || k_->externals_.size() > kMaxExternals || k_->keys_.size() > kMaxKeys) return nullptr;
    return std::move(k_);
  }

 private:
  using External = ExpressionKernel::External;
  enum class From : uint8_t { kInput, kConstant, kCode };
  struct Value {  // a register, with those that preparation adds
    From from = From::kCode;
    Span span = Span::kFull;
    DType type = DType::kFloat32;
    Lanes lanes = Lanes::kFloat;     // that it lies in
    Lanes reads = Lanes::kFloat;     // kCode: those that its function is of
    StepFunction special = nullptr;  // kCode: the step itself, where StepKind has no name for it
    int input = -1;                  // kInput
    double constant = 0;             // kConstant
    int kind = -1;                   // kCode: StepKind
    int a = -1, b = -1, c = -1;      // values
    const ops::Instruction* source = nullptr;
    bool needed = false;
    int readers = 0;
    bool convert = false;  // an operand that lies otherwise in memory, brought to its lanes in a slot of its own
    int ref = -1, slot = -1;
    int last = -1;    // last step that reads it
    int made = -1;    // step that makes it
    int direct = -1;  // output it is made in
  };
  struct Store {
    int value, output;
    DType dtype;
  };
  struct SumOf {
    int value, output;
    Collect collect;
    double scale;
  };

  const ops::Expression& e_;
  std::span<const TensorType> operands_, results_;
  bool epilogue_, by_column_ = false;
  std::unique_ptr<ExpressionKernel> k_;
  std::vector<Value> v_;
  std::vector<Store> stores_;
  std::vector<SumOf> sums_;
  std::vector<DType> types_;  // of registers
  std::vector<int> at_;       // the value of each register

  Span span_of(Extent x) const {
    const Grid& g = k_->grid_;
    if (by_column_) return x == Extent::kFull || x == Extent::kColumn ? Span::kFull : Span::kScalar;
    if (g.rows == 1) return x == Extent::kFull || x == Extent::kRow ? Span::kFull : Span::kScalar;
    return Span(int(x));
  }

  // A whole number that is only cast to float32 or bool is brought there as it is read; the values are the same.
  bool read_as_float(size_t i) const {
    const DType t = types_[i];
    if (t != DType::kInt32 && t != DType::kInt64 && t != DType::kUInt8) return false;
    for (const ops::Instruction& c : e_.code) {
      const bool reads = c.a == int(i) || c.c == int(i) || (c.b == int(i) && c.function != Function::k_dropout);
      if (reads && !(c.function == Function::k_cast && (c.dtype == DType::kFloat32 || c.dtype == DType::kBool)))
        return false;
    }
    return std::ranges::none_of(e_.results, [&](const ops::Result& r) { return r.reg == int(i); });
  }

  void read_inputs() {
    for (size_t i = 0; i < e_.inputs.size(); ++i)
      types_.push_back(epilogue_ && i == 0 ? DType::kFloat32 : operands_[i].dtype);
    types_ = ops::types_of(e_, std::move(types_));
    for (size_t i = 0; i < e_.inputs.size(); ++i) {
      Value v;
      v.from = From::kInput;
      v.input = int(i);
      v.span = span_of(e_.inputs[i]);
      v.type = types_[i];
      v.convert = !stored_as_lanes(v.type);
      if (read_as_float(i)) v.type = DType::kFloat32, v.convert = true;
      v.lanes = lanes_of(v.type);
      at_.push_back(int(v_.size()));
      v_.push_back(v);
    }
  }

  int add(Value v) {
    v_.push_back(v);
    return int(v_.size()) - 1;
  }
  int with_step(int from, DType type, StepFunction step) {
    Value v;
    v.a = from, v.span = v_[from].span, v.type = type, v.lanes = lanes_of(type), v.reads = v_[from].lanes;
    v.special = step;
    return add(v);
  }
  /// A value that a function made may have more bits than its dtype.
  int settled(int value) {
    const StepFunction step = typed_steps().settle(as_stored(v_[value].type));
    return step ? with_step(value, v_[value].type, step) : value;
  }
  int cast_value(int from, DType to) {
    const DType was = v_[from].type;
    if (was == to) return from;
    // what a half type or a bool holds is a float in its register already
    if (lanes_of(was) == Lanes::kFloat && to == DType::kFloat32) return from;
    if (lanes_of(was) == Lanes::kFloat && to == DType::kBool) {
      Value v;
      v.kind = kStep_cast_bool, v.a = from, v.span = v_[from].span, v.type = to;
      return add(v);
    }
    int made = from;
    if (lanes_of(was) != Lanes::kFloat || lanes_of(to) != Lanes::kFloat)
      made = with_step(from, to, typed_steps().cast(v_[from].lanes, as_stored(to)));
    if (const StepFunction step = typed_steps().settle(as_stored(to))) made = with_step(made, to, step);
    return made;
  }

  void read_code() {
    for (size_t i = 0; i < e_.code.size(); ++i) {
      const ops::Instruction& c = e_.code[i];
      const auto reg = int(e_.inputs.size() + i);
      Value v;
      v.source = &c;
      v.kind = int(c.function);
      v.type = types_[size_t(reg)];
      v.lanes = lanes_of(v.type);
      if (c.function == Function::k_cast) {
        at_.push_back(cast_value(at_[c.a], c.dtype));
        continue;
      }
      if (c.function == Function::k_constant) {
        v.from = From::kConstant;
        v.constant = c.immediate;
        v.span = Span::kScalar;
      } else if (c.function == Function::k_dropout) {
        v.a = at_[c.a];  // the counter is read as an integer, apart
        v.kind = kStep_dropout;
        v.reads = v.lanes;
        v.span = Span::kFull;
      } else {
        const int n = ops::arity(c.function);
        if (n > 2) {
          const DType t = ops::joint(c.function, v_[at_[c.b]].type, v_[at_[c.c]].type);
          v.kind = kStep_select;
          v.a = cast_value(at_[c.a], DType::kBool), v.b = cast_value(at_[c.b], t), v.c = cast_value(at_[c.c], t);
        } else {
          const DType t = ops::joint(c.function, v_[at_[c.a]].type, v_[at_[n > 1 ? c.b : c.a]].type);
          v.a = cast_value(at_[c.a], t);
          if (n > 1) v.b = cast_value(at_[c.b], t);
        }
        v.span = v_[v.a].span;
        if (v.b >= 0) v.span = join(v.span, v_[v.b].span);
        if (v.c >= 0) v.span = join(v.span, v_[v.c].span);
        v.reads = v_[n > 2 ? v.b : v.a].lanes;
      }
      int made = add(v);
      // Whole numbers must have their dtype's bits where others read them; half types are rounded when they are stored.
      if (v.from == From::kCode && is_integer(v.type) && read_later(reg)) made = settled(made);
      at_.push_back(made);
    }
  }
  bool read_later(int reg) const {
    return std::ranges::any_of(e_.code,
                               [&](const ops::Instruction& c) { return c.a == reg || c.b == reg || c.c == reg; });
  }

  bool read_results() {
    const Grid& g = k_->grid_;
    for (size_t i = 0; i < e_.results.size(); ++i) {
      const ops::Result& r = e_.results[i];
      Collect how = r.collect;
      if (by_column_)
        how = how == Collect::kSumRows ? Collect::kSumAll : how == Collect::kSumCols ? Collect::kStore : how;
      else if (g.rows == 1)
        how = how == Collect::kSumRows ? Collect::kStore : how == Collect::kSumCols ? Collect::kSumAll : how;
      const DType t = results_[i].dtype;
      int value = at_[r.reg];
      if (v_[value].type != t && is_integer(v_[value].type)) value = settled(value);
      if (how == Collect::kStore) {
        if (r.collect != Collect::kStore && r.scale != 1) {  // a sum of one element
          Value f;
          f.from = From::kConstant, f.constant = r.scale, f.span = Span::kScalar;
          f.type = v_[value].type, f.lanes = v_[value].lanes;
          Value m;
          m.kind = kStep_multiply, m.a = value, m.b = add(f), m.span = v_[value].span;
          m.type = v_[value].type, m.lanes = m.reads = v_[value].lanes;
          value = add(m);
        }
        stores_.push_back({cast_value(value, t), int(i), t});
        if (t == DType::kFloat32 && r.collect == Collect::kStore) k_->product_output_ = int(i);
      } else {
        if (t != DType::kFloat32 && t != DType::kFloat64) return false;
        value = cast_value(value, t);
        if (v_[value].from == From::kConstant) return false;
        sums_.push_back({value, int(i), how, r.scale});
      }
    }
    return true;
  }

  void need(int i) {
    if (i < 0) return;
    ++v_[i].readers;
    if (std::exchange(v_[i].needed, true)) return;
    need(v_[i].a), need(v_[i].b), need(v_[i].c);
  }

  // relu(add) and the like become one step; the inner value must have no other reader.
  void join_pairs() {
    auto only = [&](int i, int kind) {
      return v_[i].from == From::kCode && v_[i].lanes == Lanes::kFloat && v_[i].kind == kind && v_[i].readers == 1 &&
             !stored(i);
    };
    for (Value& v : v_) {
      if (v.from != From::kCode || !v.needed || v.reads != Lanes::kFloat) continue;
      if (v.kind == kStep_relu && only(v.a, kStep_add)) take(v, v.a, kStep_add_relu);
      if (v.kind == kStep_dropout && only(v.a, kStep_add_relu) && v_[v.a].span == Span::kFull)
        take(v, v.a, kStep_add_relu_dropout);
      else if (v.kind == kStep_dropout && only(v.a, kStep_gate) && v_[v.a].span == Span::kFull)
        take(v, v.a, kStep_gate_dropout);
      else if (v.kind == kStep_gate && only(v.a, kStep_dropout)) {
        v.source = v_[v.a].source;
        const int inner = v.a;
        v.a = v_[inner].a, v.kind = kStep_gate_dropout;
        v_[inner].needed = false;
      }
    }
  }
  void take(Value& v, int inner, int kind) {
    v.a = v_[inner].a, v.b = v_[inner].b, v.kind = kind;
    v_[inner].needed = false;
  }
  bool stored(int value) const {
    for (const Store& s : stores_)
      if (s.value == value) return true;
    for (const SumOf& s : sums_)
      if (s.value == value) return true;
    return false;
  }

  void drop_dead() {
    for (const Store& s : stores_) need(s.value);
    for (const SumOf& s : sums_) need(s.value);
    join_pairs();
  }

  // At most a vector of elements in one block: threaded code as well. Loads come first, so that no result overwrites an
  // operand.
  void emit_tiny() {
    const ExpressionSteps& table = expression_steps();
    const Grid& g = k_->grid_;
    if (g.rows != 1 || g.cols < 1 || g.cols > table.lanes || g.row_blocks * g.col_blocks != 1 || v_.size() > 64) return;
    for (const Value& v : v_)
      if (v.needed && (v.lanes != Lanes::kFloat || v.special || is_half(v.type))) return;
    std::vector<TinyOp> ops;
    int last = -1;
    auto op = [&](int kind, int d, int a = -1, int b = -1, int c = -1, bool keeps = false) -> TinyOp& {
      TinyKind k{kind};
      if (a >= 0 && a == last && a != b)
        k.a = TinyKind::kLast;
      else if (b >= 0 && b == last && a != b)
        k.b = TinyKind::kLast;
      TinyOp o{};
      o.run = table.tiny_op(k);
      o.d = int16_t(d), o.a = int16_t(a), o.b = int16_t(b), o.c = int16_t(c);
      ops.push_back(o);
      if (!keeps) last = d;
      return ops.back();
    };
    for (size_t i = 0; i < v_.size(); ++i) {
      const Value& v = v_[i];
      if (!v.needed || v.from == From::kCode) continue;
      const int at = int(i);
      if (v.from == From::kConstant) {
        op(kStep_constant, at).scale = float(v.constant);
      } else if (epilogue_ && v.input == 0) {
        op(kTiny_load_product, at);
      } else {
        const DType t = operands_[v.input].dtype;
        if (v.convert && (v.span == Span::kScalar || t == DType::kInt64)) return;
        op(v.span == Span::kScalar ? kTiny_load_scalar
           : t == DType::kFloat32  ? kTiny_load
           : t == DType::kInt32    ? kTiny_load_int32
                                   : kTiny_load_byte,
           at)
            .a = int16_t(v.input);
      }
    }
    for (size_t i = 0; i < v_.size(); ++i) {
      const Value& v = v_[i];
      if (!v.needed || v.from != From::kCode) continue;
      TinyOp& o = op(v.kind, int(i), v.a, v.b, v.c);
      if (!o.run) return;
      if (v.kind == kStep_dropout) {
        const DType t = operands_[v.source->b].dtype;
        if (t != DType::kInt32 && t != DType::kInt64) return;
        o.counter = v.source->b, o.salt = v.source->salt;
        const auto rate = float(v.source->immediate);
        o.threshold = ops::dropout_threshold(rate), o.scale = ops::dropout_scale(rate);
      }
    }
    for (const SumOf& s : sums_) op(kTiny_sum, s.output, s.value, -1, -1, true).scale = float(s.scale);
    for (const Store& s : stores_) {
      if (s.dtype != DType::kFloat32 && s.dtype != DType::kBool) return;
      op(s.dtype == DType::kFloat32 ? kTiny_store : kTiny_store_bool, s.output, s.value, -1, -1, true);
    }
    op(kTiny_end, 0);
    k_->tiny_ = std::move(ops);
    k_->tiny_function_ = table.tiny;
  }

  // A step before places are known.
  struct Draft {
    enum class Kind : uint8_t { kCompute, kConvert, kSumRows, kSumCols, kSumAll, kStore } kind;
    int value;  // computed, summed or stored
    int output = -1;
    double scale = 1;
  };
  std::vector<Draft> drafts_;

  void reads(const Draft& d, int out[3], int& n) const {
    n = 0;
    if (d.kind == Draft::Kind::kCompute) {
      for (int r : {v_[d.value].a, v_[d.value].b, v_[d.value].c})
        if (r >= 0) out[n++] = r;
    } else {
      out[n++] = d.value;
    }
  }
  bool reads_full_operand(const Draft& d) const {
    int r[3], n;
    reads(d, r, n);
    for (int i = 0; i < n; ++i)
      if (v_[r[i]].from == From::kInput && v_[r[i]].span == Span::kFull &&
          (d.kind == Draft::Kind::kConvert || !v_[r[i]].convert))
        return true;
    return false;
  }

  bool emit() {
    // order: what does not vary first, then the code, then sums, then stores; conversions before their first reader
    std::vector<bool> converted(v_.size());
    auto compute = [&](int i) {
      const Value& v = v_[i];
      for (int r : {v.a, v.b, v.c})
        if (r >= 0 && v_[r].convert && !converted[r])
          drafts_.push_back({Draft::Kind::kConvert, r}), converted[r] = true;
      drafts_.push_back({Draft::Kind::kCompute, i});
    };
    auto converted_value = [&](int i) {
      if (v_[i].convert && !converted[i]) drafts_.push_back({Draft::Kind::kConvert, i}), converted[i] = true;
    };
    for (size_t i = 0; i < v_.size(); ++i)
      if (v_[i].from == From::kInput && v_[i].needed && v_[i].span == Span::kScalar) converted_value(int(i));
    for (size_t i = 0; i < v_.size(); ++i)
      if (v_[i].from == From::kCode && v_[i].needed && v_[i].span == Span::kScalar) compute(int(i));
    k_->preamble_ = int(drafts_.size());
    for (size_t i = 0; i < v_.size(); ++i)
      if (v_[i].from == From::kCode && v_[i].needed && v_[i].span != Span::kScalar) compute(int(i));
    for (const SumOf& s : sums_) {
      converted_value(s.value);
      drafts_.push_back({s.collect == Collect::kSumRows   ? Draft::Kind::kSumRows
                         : s.collect == Collect::kSumCols ? Draft::Kind::kSumCols
                                                          : Draft::Kind::kSumAll,
                         s.value, s.output, s.scale});
    }
    // A stored operand may lie where another result goes: with several results it is taken aside first.
    std::vector<int> aside(v_.size(), -1);
    if (stores_.size() > 1)
      for (const Store& s : stores_)
        if (v_[s.value].from == From::kInput && !v_[s.value].convert && v_[s.value].span == Span::kFull &&
            aside[s.value] < 0) {
          Value copy;
          copy.kind = kStep_copy, copy.a = s.value, copy.span = Span::kFull, copy.needed = true;
          copy.type = v_[s.value].type, copy.lanes = copy.reads = v_[s.value].lanes;
          v_.push_back(copy);
          aside[s.value] = int(v_.size()) - 1;
          drafts_.push_back({Draft::Kind::kCompute, aside[s.value]});
        }
    for (Store& s : stores_) {
      converted_value(s.value);
      if (s.value < int(aside.size()) && aside[s.value] >= 0) s.value = aside[s.value];
      const Span span = v_[s.value].span;
      if (!stored_as_lanes(s.dtype) && span != Span::kFull) {  // spread it first
        Value copy;
        copy.kind = kStep_copy, copy.a = s.value, copy.span = Span::kFull, copy.needed = true;
        copy.type = v_[s.value].type, copy.lanes = copy.reads = v_[s.value].lanes;
        v_.push_back(copy);
        s.value = int(v_.size()) - 1;
        drafts_.push_back({Draft::Kind::kCompute, s.value});
      }
      drafts_.push_back({Draft::Kind::kStore, s.value, s.output});
    }
    choose_direct();
    return place();
  }

  // A value is made in its output at once when nothing after it reads an operand: the output may be that operand's
  // place.
  void choose_direct() {
    for (size_t p = 0; p < drafts_.size(); ++p)
      if (drafts_[p].kind == Draft::Kind::kCompute) v_[drafts_[p].value].made = int(p);
    size_t last_read = 0;
    bool any = false;
    for (size_t p = 0; p < drafts_.size(); ++p)
      if (reads_full_operand(drafts_[p])) last_read = p, any = true;
    for (size_t p = 0; p < drafts_.size();) {
      const Draft d = drafts_[p];
      Value& v = v_[d.value];
      if (d.kind == Draft::Kind::kStore && stored_as_lanes(results_[d.output].dtype) && v.from == From::kCode &&
          v.span == Span::kFull && v.direct < 0 && (!any || size_t(v.made) >= last_read)) {
        v.direct = d.output;
        drafts_.erase(drafts_.begin() + long(p));
        continue;
      }
      ++p;
    }
  }

  int16_t external(External x) {
    x.ref = int16_t(k_->refs_++);
    k_->externals_.push_back(x);
    return x.ref;
  }
  void strides(External& x, Span span, int64_t size, int64_t ld) const {
    x.row_bytes = span == Span::kFull ? ld * size : span == Span::kColumn ? size : 0;
    x.col_bytes = span == Span::kFull || span == Span::kRow ? size : 0;
    x.rs = span == Span::kFull ? ld : span == Span::kColumn ? 1 : 0;
  }
  int16_t output_external(int output, int64_t size) {
    External x{External::Kind::kOutput};
    x.index = int16_t(output);
    strides(x, Span::kFull, size, k_->grid_.cols);
    return external(x);
  }
  int16_t input_external(int i) {
    const Value& v = v_[i];
    const bool product = epilogue_ && v.input == 0;
    External x{product ? External::Kind::kProduct : External::Kind::kInput};
    x.index = int16_t(v.input);
    strides(x, v.span, product ? 4 : size_of(operands_[v.input].dtype).value, k_->grid_.cols);
    return external(x);
  }

  bool place() {
    const ExpressionSteps& table = expression_steps();
    for (size_t p = 0; p < drafts_.size(); ++p) {
      int r[3], n;
      reads(drafts_[p], r, n);
      if (drafts_[p].kind == Draft::Kind::kConvert) continue;
      for (int i = 0; i < n; ++i) v_[r[i]].last = int(p);
    }
    std::vector<int> free_slots[4];
    std::vector<int> raw(v_.size(), -1);  // ref of an operand before conversion
    auto new_slot = [&](int value) {
      Value& v = v_[value];
      std::vector<int>& pool = free_slots[int(v.span)];  // by span: a slot's rows lie differently for each
      if (pool.empty()) pool.push_back(k_->slot_count_++);
      v.slot = pool.back(), pool.pop_back();
      v.ref = k_->refs_++;
      k_->slots_.push_back({int16_t(v.ref), int16_t(v.slot), v.span});
    };
    auto ref_of = [&](int value) -> int16_t {
      Value& v = v_[value];
      if (v.ref < 0) {
        if (v.from == From::kConstant) {
          v.ref = k_->refs_++;
          k_->constants_.push_back(constant(int16_t(v.ref), v));
        } else {
          v.ref = input_external(value);
        }
      }
      return int16_t(v.ref);
    };
    const TypedSteps& typed = typed_steps();
    for (size_t p = 0; p < drafts_.size(); ++p) {
      const Draft& d = drafts_[p];
      Step s{};
      s.a = s.b = s.c = s.d = 0;
      s.span = v_[d.value].span;
      s.scale = float(d.scale);
      auto vector_in = [&](int value, Span of) {
        const Span x = v_[value].span;
        if (of == Span::kScalar || of == Span::kColumn) return x == of;
        return x == Span::kFull || x == Span::kRow;
      };
      auto release = [&](int value) {
        Value& v = v_[value];
        // what does not vary is made once a tile and must outlive its chunks
        if (v.slot >= 0 && v.last == int(p) && v.span != Span::kScalar)
          free_slots[int(v.span)].push_back(v.slot), v.last = -2;
      };
      switch (d.kind) {
        case Draft::Kind::kConvert: {
          const int16_t from = input_external(d.value);
          s.a = from;
          new_slot(d.value);
          s.d = int16_t(v_[d.value].ref);
          const DType t = operands_[v_[d.value].input].dtype;
          if (v_[d.value].type != DType::kFloat32 && t != DType::kBool)
            s.run = typed.load(as_stored(t));
          else
            s.run = t == DType::kInt32 ? table.from_int32 : t == DType::kInt64 ? table.from_int64 : table.from_byte;
          k_->cost_ += 0.1;
          break;
        }
        case Draft::Kind::kCompute: {
          Value& v = v_[d.value];
          const bool va = vector_in(v.a, v.span), vb = v.b >= 0 && vector_in(v.b, v.span),
                     vc = v.c >= 0 && vector_in(v.c, v.span);
          s.run = v.special                  ? v.special
                  : v.reads == Lanes::kFloat ? table.step(v.kind, va, vb, vc)
                                             : typed.step(v.reads, v.kind, va, vb, vc);
          if (!s.run) return false;
          s.a = ref_of(v.a);
          if (v.b >= 0) s.b = ref_of(v.b);
          if (v.c >= 0) s.c = ref_of(v.c);
          if (v.kind == kStep_dropout || v.kind == kStep_add_relu_dropout || v.kind == kStep_gate_dropout) {
            const ops::Instruction& c = *v.source;
            const DType t = operands_[c.b].dtype;
            if (t != DType::kInt32 && t != DType::kInt64) return false;
            s.key = int16_t(k_->keys_.size());
            k_->keys_.push_back({c.b, c.salt});
            s.threshold = ops::dropout_threshold(float(c.immediate));
            s.scale = ops::dropout_scale(float(c.immediate));
          }
          // operands that end here give their slots to the result: a step reads an element before it writes it
          const int operand[] = {v.a, v.b, v.c};
          for (int i = 0; i < 3; ++i)
            if (operand[i] >= 0 && v_[operand[i]].span == v.span &&
                lane_bytes(v_[operand[i]].lanes) == lane_bytes(v.lanes))
              release(operand[i]);
          if (v.direct >= 0)
            v.ref = output_external(v.direct, lane_bytes(v.lanes));
          else
            new_slot(d.value);
          for (int i = 0; i < 3; ++i)
            if (operand[i] >= 0) release(operand[i]);
          s.d = int16_t(v.ref);
          k_->cost_ += v.special ? 0.1 : cost_of(v.kind) * (lane_bytes(v.reads) == 8 ? 2 : 1);
          break;
        }
        case Draft::Kind::kSumRows:
        case Draft::Kind::kSumCols:
        case Draft::Kind::kSumAll: {
          s.a = ref_of(d.value);
          s.span = Span::kFull;
          const bool va = vector_in(d.value, Span::kFull);
          const Collect how = d.kind == Draft::Kind::kSumRows   ? Collect::kSumRows
                              : d.kind == Draft::Kind::kSumCols ? Collect::kSumCols
                                                                : Collect::kSumAll;
          const bool wide = v_[d.value].lanes == Lanes::kDouble;
          s.run = how == Collect::kSumRows   ? (wide ? typed.sum_rows : table.sum_rows)(va)
                  : how == Collect::kSumCols ? (wide ? typed.sum_cols : table.sum_cols)(va)
                                             : (wide ? typed.sum_all : table.sum_all)(va);
          s.d = sum_external(d, how);
          release(d.value);
          k_->cost_ += 0.06;
          break;
        }
        case Draft::Kind::kStore: {
          s.a = ref_of(d.value);
          s.span = Span::kFull;
          const DType t = results_[d.output].dtype;
          s.d = output_external(d.output, size_of(t).value);
          const bool vector = vector_in(d.value, Span::kFull);
          if (t == DType::kFloat32)
            s.run = table.step(kStep_copy, vector, false, false);
          else if (t == DType::kBool)
            s.run = table.to_bool;
          else
            s.run = stored_as_lanes(t) ? typed.step(lanes_of(t), kStep_copy, vector, false, false)
                                       : typed.store(as_stored(t));
          release(d.value);
          k_->cost_ += 0.06;
          break;
        }
      }
      k_->steps_.push_back(s);
    }
    for (const External& x : k_->externals_)
      if (x.row_bytes && x.col_bytes) k_->cost_ += 0.1;
    return true;
  }

  int16_t sum_external(const Draft& d, Collect how) {
    const Grid& g = k_->grid_;
    const int64_t bytes = lane_bytes(v_[d.value].lanes);
    ExpressionKernel::Sum sum{int16_t(d.output), 0, how, d.scale, true, bytes == 8};
    External x{External::Kind::kOutput};
    x.index = int16_t(d.output);
    if (how == Collect::kSumRows) {
      sum.direct = g.row_blocks == 1;
      x.col_bytes = bytes;
      x.row_block_bytes = g.cols * bytes;
    } else if (how == Collect::kSumCols) {
      sum.direct = g.col_blocks == 1;
      x.row_bytes = bytes;
      x.rs = 1;
      x.col_block_bytes = g.rows * bytes;
    } else {
      sum.direct = g.row_blocks * g.col_blocks == 1;
      x.row_block_bytes = 8 * g.col_blocks, x.col_block_bytes = 8;
      if (sum.direct) x.kind = External::Kind::kOwn, x.offset = own_sums_++ * 8;
    }
    if (!sum.direct) {
      const int64_t size = how == Collect::kSumRows   ? x.row_block_bytes * g.row_blocks
                           : how == Collect::kSumCols ? x.col_block_bytes * g.col_blocks
                                                      : x.row_block_bytes * g.row_blocks;
      x.kind = External::Kind::kShared;
      x.offset = k_->shared_bytes_;
      k_->shared_bytes_ += (size + 63) / 64 * 64;
      k_->unfinished_ = true;
    }
    const int16_t ref = external(x);
    sum.external = int16_t(k_->externals_.size() - 1);
    k_->sums_.push_back(sum);
    return ref;
  }

  void finish_layout() {
    const Grid& g = k_->grid_;
    const int64_t all = std::max<int64_t>(1, g.rows * g.cols);
    k_->chunk_ = INT64_MAX / 4;
    if (k_->slot_count_) {
      k_->chunk_ = std::clamp<int64_t>(kSlotBudget / k_->widest_ / k_->slot_count_ / 64 * 64, 128, 1024);
      k_->slot_bytes_ = (std::min(k_->chunk_, all) + 15) / 16 * 16 * k_->widest_;
    }
    // slots first, then the doubles of sums
    const int64_t sums_at = k_->slot_count_ * k_->slot_bytes_;
    for (External& x : k_->externals_)
      if (x.kind == External::Kind::kOwn) x.offset += sums_at;
    k_->own_bytes_ = (sums_at + own_sums_ * 8 + 63) / 64 * 64;
  }
  static ExpressionKernel::Constant constant(int16_t ref, const Value& v) {
    ExpressionKernel::Constant c{ref, {}};
    const auto put = [&](auto number) { std::memcpy(c.value, &number, sizeof number); };
    with_type(v.type, [&]<class T>() {  // rounded to its own type first
      T typed;
      store(&typed, 0, v.constant);
      const Number<T> number = load(&typed, 0);
      switch (v.lanes) {
        case Lanes::kFloat:
          return put(is_half(v.type) ? convert<float>(v.constant) : convert<float>(number));
        case Lanes::kDouble:
          return put(convert<double>(number));
        case Lanes::kInt32:
          return put(convert<int32_t>(number));
        case Lanes::kInt64:
        case Lanes::kUInt64:
          return put(convert<int64_t>(number));
      }
    });
    return c;
  }
  int64_t own_sums_ = 0;
};

bool ExpressionKernel::flat(const ops::Expression& e) {
  for (Extent x : e.inputs)
    if (x != Extent::kFull && x != Extent::kScalar) return false;
  for (const ops::Result& r : e.results)
    if (r.collect != Collect::kStore && r.collect != Collect::kSumAll) return false;
  return true;
}

std::unique_ptr<ExpressionKernel> ExpressionKernel::make(const ops::Expression& e, std::span<const TensorType> operands,
                                                         std::span<const TensorType> results, Grid grid,
                                                         bool epilogue) {
  return Preparation(e, operands, results, grid, epilogue).run();
}

std::byte* ExpressionKernel::base(const External& e, const ExpressionCall& call, const Tile& t) const {
  switch (e.kind) {
    case External::Kind::kInput:
      return static_cast<std::byte*>(call.in[e.index]);
    case External::Kind::kOutput:
      return static_cast<std::byte*>(call.out[e.index]);
    case External::Kind::kOwn:
      return call.own + e.offset;
    case External::Kind::kShared:
      return call.shared + e.offset + t.row_block * e.row_block_bytes + t.col_block * e.col_block_bytes;
    case External::Kind::kProduct:
      break;
  }
  // as an address of (0, 0), which may lie outside of the product
  return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(call.product) -
                                      uintptr_t((t.row * call.product_ld + t.col) * 4));
}

void ExpressionKernel::tile(const ExpressionCall& call, const Tile& tile) const noexcept {
  if (tiny_function_ && tile.rows * tile.cols == grid_.cols)
    return tiny_function_(tiny_.data(), {call.in, call.out, call.product, grid_.cols});
  const Tile turned{tile.col, tile.cols, tile.row, tile.rows, tile.col_block, tile.row_block, tile.first, tile.last};
  const Tile& t = turned_ ? turned : tile;
  Ref refs[kMaxRefs];
  std::byte* bases[kMaxExternals];
  uint64_t keys[kMaxKeys];
  Chunk c;
  int64_t step_rows = t.rows, step_cols = t.cols;
  if (step_rows * step_cols > chunk_) step_cols = std::min(step_cols, chunk_), step_rows = chunk_ / step_cols;

  const size_t externals = externals_.size();
  for (size_t i = 0; i < externals; ++i) {
    const External& e = externals_[i];
    bases[i] = base(e, call, t);
    refs[e.ref].rs = e.kind == External::Kind::kProduct ? call.product_ld : e.rs;
  }
  for (const Slot& s : slots_)
    refs[s.ref] = {call.own + s.slot * slot_bytes_, s.span == Span::kFull ? step_cols : s.span == Span::kColumn};
  for (const Constant& k : constants_) refs[k.ref] = {const_cast<std::byte*>(k.value), 0};
  for (size_t i = 0; i < keys_.size(); ++i) {
    const void* counter = call.in[keys_[i].input];  // an int64 gives its low half, as in the reference
    keys[i] = random_key(keys_[i].salt, *static_cast<const uint32_t*>(counter));
  }
  c.keys = keys;
  c.element_stride = uint32_t(grid_.cols);
  c.rows[int(Span::kRow)] = c.rows[int(Span::kColumn)] = c.rows[int(Span::kScalar)] = c.cols[int(Span::kScalar)] = 1;

  const Step* const steps = steps_.data();
  const Step* from = steps;
  const Step* const end = steps + steps_.size();
  const int64_t last_row = t.row + t.rows, last_col = t.col + t.cols;
  for (int64_t row = t.row; row < last_row; row += step_rows)
    for (int64_t col = t.col; col < last_col; col += step_cols) {
      const int64_t rows = std::min(step_rows, last_row - row), cols = std::min(step_cols, last_col - col);
      for (size_t i = 0; i < externals; ++i) {
        const External& e = externals_[i];
        const int64_t row_bytes =
            e.kind == External::Kind::kProduct ? (turned_ ? 0 : call.product_ld * 4) : e.row_bytes;
        refs[e.ref].p = bases[i] + row * row_bytes + col * e.col_bytes;
      }
      c.rows[0] = rows, c.cols[0] = cols;
      c.cols[int(Span::kRow)] = cols, c.cols[int(Span::kColumn)] = rows;
      c.element = uint32_t(row * grid_.cols + col);
      c.first_row = t.first && row == t.row;
      c.first_col = col == t.col;
      c.first = c.first_row && c.first_col;
      for (const Step* s = from; s != end; ++s) s->run(*s, refs, c);
      from = steps + preamble_;
    }

  for (const Sum& s : sums_) {
    const External& e = externals_[s.external];
    std::byte* acc = bases[s.external] + t.row * e.row_bytes + t.col * e.col_bytes;
    const int64_t n = s.collect == Collect::kSumRows ? t.cols : s.collect == Collect::kSumCols ? t.rows : 1;
    if (t.first && (t.rows == 0 || t.cols == 0))
      std::memset(acc, 0, size_t(n) * (s.collect == Collect::kSumAll || s.wide ? 8 : 4));
    if (!s.direct || !t.last) continue;
    if (s.collect == Collect::kSumAll) {
      double value;
      std::memcpy(&value, acc, 8);
      if (s.wide)
        *static_cast<double*>(call.out[s.output]) = value * s.scale;
      else
        *static_cast<float*>(call.out[s.output]) = float(value * double(float(s.scale)));
    } else if (s.scale != 1) {
      if (s.wide)
        typed_steps().scale(reinterpret_cast<double*>(acc), n, s.scale);
      else
        expression_steps().scale(reinterpret_cast<float*>(acc), n, float(s.scale));
    }
  }
}

void ExpressionKernel::finish(const ExpressionCall& call) const noexcept {
  for (const Sum& s : sums_) {
    if (s.direct) continue;
    const std::byte* at = call.shared + externals_[s.external].offset;
    void* out = call.out[s.output];
    if (s.collect == Collect::kSumAll) {
      double total = 0, part;
      for (int i = 0; i < grid_.row_blocks * grid_.col_blocks; ++i) std::memcpy(&part, at + 8 * i, 8), total += part;
      if (s.wide)
        *static_cast<double*>(out) = total * s.scale;
      else
        *static_cast<float*>(out) = float(total * double(float(s.scale)));
      continue;
    }
    const bool rows = s.collect == Collect::kSumRows;
    const int64_t n = rows ? grid_.cols : grid_.rows, times = rows ? grid_.row_blocks : grid_.col_blocks;
    if (s.wide)
      typed_steps().combine(static_cast<double*>(out), reinterpret_cast<const double*>(at), n, times, s.scale);
    else
      expression_steps().combine(static_cast<float*>(out), reinterpret_cast<const float*>(at), n, times,
                                 float(s.scale));
  }
}

}  // namespace millpond::backend::cpu
