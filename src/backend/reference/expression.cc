#include "backend/reference/expression.h"

#include "base/random.h"
#include "ops/apply.h"
#include "ops/dropout.h"

namespace millpond::backend::reference {

using ops::Collect;
using ops::Extent;
using ops::Function;

Interpreter::Interpreter(ops::Expression e, int first, int64_t rows, int64_t cols, std::span<const TensorType> operands,
                         std::span<const TensorType> outputs, DType given)
    : e_(std::move(e)), first_(first), rows_(rows), cols_(cols) {
  for (const TensorType& t : operands) in_.push_back(t.dtype);
  for (const TensorType& t : outputs) out_.push_back(t.dtype);
  types_ = in_;
  if (first) types_.insert(types_.begin(), given);
  MP_ASSERT(types_.size() == e_.inputs.size() && out_.size() == e_.results.size() && ops::violation(e_).empty());
  types_ = ops::types_of(e_, std::move(types_));
}

template <class T>
T Interpreter::get(Register r, DType t) {
  if (is_floating(t)) return convert<T>(r.d);
  return is_integer(t) && is_signed(t) ? convert<T>(r.i) : convert<T>(r.u);
}

// Rounded to float32 in registers of the half types, to its own width in those of whole numbers.
template <class T>
Interpreter::Register Interpreter::made(T v, DType t) {
  Register r{};
  with_type(t, [&]<class To>() {
    if constexpr (kFloating<To>)
      r.d = double(convert<Number<To>>(v));
    else if constexpr (std::is_signed_v<To>)
      r.i = convert<To>(v);
    else
      r.u = convert<To>(v);
  });
  return r;
}

int64_t Interpreter::sums(int result) const {
  switch (e_.results[result].collect) {
    case Collect::kSumRows:
      return cols_;
    case Collect::kSumCols:
      return rows_;
    case Collect::kSumAll:
      return 1;
    default:
      return 0;
  }
}

Bytes Interpreter::workspace() const {
  int64_t n = int64_t(e_.inputs.size() + e_.code.size());
  for (size_t k = 0; k < e_.results.size(); ++k) n += sums(int(k));
  return Bytes{n * int64_t(sizeof(double))};
}

void Interpreter::begin(std::byte* scratch) const { std::fill(scratch, scratch + workspace().value, std::byte{0}); }

void Interpreter::at(int64_t row, int64_t col, double register0, void* const* in, void* const* out,
                     std::byte* scratch) const {
  auto* r = reinterpret_cast<Register*>(scratch);
  Register* sum = r + types_.size();
  const int64_t element = row * cols_ + col;
  if (first_) r[0] = made(register0, types_[0]);
  for (size_t i = 0; i < in_.size(); ++i) {
    const int64_t place[] = {element, col, row, 0};
    r[first_ + i] = with_type(in_[i], [&]<class T>() {
      return made(load(static_cast<const T*>(in[i]), place[int(e_.inputs[first_ + i])]), in_[i]);
    });
  }
  for (size_t i = 0; i < e_.code.size(); ++i)
    r[e_.inputs.size() + i] = evaluate(e_.code[i], r, types_[e_.inputs.size() + i], element, in);
  for (size_t k = 0; k < e_.results.size(); ++k) {
    const int from = e_.results[k].reg;
    const DType t = types_[size_t(from)];
    Register* at = sum;
    switch (e_.results[k].collect) {
      case Collect::kStore:
        with_type(out_[k], [&]<class T>() {
          auto* p = static_cast<T*>(out[k]);
          if (is_floating(t))
            store(p, element, r[from].d);
          else if (is_integer(t) && is_signed(t))
            store(p, element, r[from].i);
          else
            store(p, element, r[from].u);
        });
        continue;
      case Collect::kSumRows:
        at += col;
        break;
      case Collect::kSumCols:
        at += row;
        break;
      case Collect::kSumAll:
        break;
    }
    if (is_floating(out_[k]))
      at->d += get<double>(r[from], t);
    else
      at->u += get<uint64_t>(r[from], t);
    sum += sums(int(k));
  }
}

Interpreter::Register Interpreter::evaluate(const ops::Instruction& c, const Register* r, DType t, int64_t element,
                                            void* const* in) const {
  const auto type = [&](int reg) { return types_[size_t(reg)]; };
  switch (c.function) {
    case Function::k_select: {
      const int from = get<bool>(r[c.a], type(c.a)) ? c.b : c.c;
      if (type(from) == t) return r[from];
      return is_floating(type(from)) ? made(r[from].d, t) : made(get<int64_t>(r[from], type(from)), t);
    }
    case Function::k_cast: {
      const DType from = type(c.a);
      Register y = is_floating(from)                     ? made(r[c.a].d, t)
                   : is_integer(from) && is_signed(from) ? made(r[c.a].i, t)
                                                         : made(r[c.a].u, t);
      if (is_half(t))  // from what it was, not from its float
        with_floating(t, [&]<class T>() {
          const T half = is_floating(from)                     ? convert<T>(r[c.a].d)
                         : is_integer(from) && is_signed(from) ? convert<T>(r[c.a].i)
                                                               : convert<T>(r[c.a].u);
          y.d = double(load(&half, 0));
        });
      return y;
    }
    case Function::k_constant:
      return made(c.immediate, t);
    case Function::k_dropout: {
      // the counter itself, not its register: a float would round it
      const int64_t counter =
          type(c.b) == DType::kFloat32 ? int64_t(r[c.b].d) : integer(in[c.b - first_], type(c.b), 0);
      const uint32_t bits = random_bits(random_key(c.salt, uint64_t(uint32_t(counter))), uint32_t(element));
      const auto rate = float(c.immediate);
      if (bits < ops::dropout_threshold(rate)) return made(0.0, t);
      if (t == DType::kFloat64) return made(r[c.a].d * double(ops::dropout_scale(rate)), t);
      return made(float(r[c.a].d) * ops::dropout_scale(rate), t);
    }
    default:
      break;
  }
  const DType of = ops::joint(c.function, type(c.a), type(c.b < 0 ? c.a : c.b));
  const auto apply = [&]<class T>() {
    return made(ops::apply<T>(c.function, get<T>(r[c.a], type(c.a)), c.b < 0 ? T(0) : get<T>(r[c.b], type(c.b))), t);
  };
  if (of == DType::kFloat64) return apply.template operator()<double>();
  if (is_floating(of)) return apply.template operator()<float>();
  if (is_integer(of) && is_signed(of)) return apply.template operator()<int64_t>();
  return apply.template operator()<uint64_t>();
}

void Interpreter::end(void* const* out, std::byte* scratch) const {
  const Register* sum = reinterpret_cast<Register*>(scratch) + types_.size();
  for (size_t k = 0; k < e_.results.size(); ++k) {
    for (int64_t i = 0; i < sums(int(k)); ++i)
      with_type(out_[k], [&]<class T>() {
        if constexpr (kFloating<T>)
          store(static_cast<T*>(out[k]), i, sum[i].d * double(e_.results[k].scale));
        else
          store(static_cast<T*>(out[k]), i, sum[i].u);
      });
    sum += sums(int(k));
  }
}

}  // namespace millpond::backend::reference
