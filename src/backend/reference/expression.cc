#include "backend/reference/expression.h"

#include "base/random.h"
#include "ops/apply.h"
#include "ops/dropout.h"

namespace millpond::backend::reference {

using ops::Collect;
using ops::Extent;
using ops::Function;

namespace {
double read(const void* p, DType t, int64_t i) {
  return with_type(t, [&]<class T>() { return double(load(static_cast<const T*>(p), i)); });
}
void write(void* p, DType t, int64_t i, double v) {
  with_type(t, [&]<class T>() { store(static_cast<T*>(p), i, v); });
}
}  // namespace

Interpreter::Interpreter(ops::Expression e, int first, int64_t rows, int64_t cols, std::span<const TensorType> operands,
                         std::span<const TensorType> outputs)
    : e_(std::move(e)), first_(first), rows_(rows), cols_(cols) {
  for (const TensorType& t : operands) in_.push_back(t.dtype);
  for (const TensorType& t : outputs) out_.push_back(t.dtype);
  wide_ = std::ranges::count(out_, DType::kFloat64) > 0;
  MP_ASSERT(in_.size() + size_t(first) == e_.inputs.size() && out_.size() == e_.results.size() &&
            ops::violation(e_).empty());
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
  if (wide_)
    evaluate<double>(row, col, register0, in, out, scratch);
  else
    evaluate<float>(row, col, register0, in, out, scratch);
}

template <class T>
void Interpreter::evaluate(int64_t row, int64_t col, double register0, void* const* in, void* const* out,
                           std::byte* scratch) const {
  double* registers = reinterpret_cast<double*>(scratch);
  double* sum = registers + e_.inputs.size() + e_.code.size();
  const int64_t element = row * cols_ + col;
  if (first_) registers[0] = register0;
  for (size_t i = 0; i < in_.size(); ++i) {
    const int64_t place[] = {element, col, row, 0};
    registers[first_ + i] = read(in[i], in_[i], place[int(e_.inputs[first_ + i])]);
  }
  for (size_t i = 0; i < e_.code.size(); ++i) {
    const ops::Instruction& c = e_.code[i];
    auto reg = [&](int r) { return T(r < 0 ? 0.0 : registers[r]); };
    T v{};
    switch (c.function) {
      case Function::k_select:
        v = reg(c.a) != 0 ? reg(c.b) : reg(c.c);
        break;
      case Function::k_cast_bool:
        v = reg(c.a) != 0;
        break;
      case Function::k_truncate:
        v = std::trunc(reg(c.a));
        break;
      case Function::k_constant:
        v = T(c.immediate);
        break;
      case Function::k_dropout: {
        // the counter itself, not its register: a float would round it
        const int64_t counter =
            in_[c.b - first_] == DType::kFloat32 ? int64_t(reg(c.b)) : integer(in[c.b - first_], in_[c.b - first_], 0);
        const uint32_t bits = random_bits(random_key(c.salt, uint64_t(uint32_t(counter))), uint32_t(element));
        v = bits >= ops::dropout_threshold(c.immediate) ? reg(c.a) * T(ops::dropout_scale(c.immediate)) : T(0);
        break;
      }
      default:
        v = ops::apply<T>(c.function, reg(c.a), reg(c.b));
    }
    registers[e_.inputs.size() + i] = v;
  }
  for (size_t k = 0; k < e_.results.size(); ++k) {
    const double v = registers[e_.results[k].reg];
    switch (e_.results[k].collect) {
      case Collect::kStore:
        write(out[k], out_[k], element, v);
        break;
      case Collect::kSumRows:
        sum[col] += v;
        break;
      case Collect::kSumCols:
        sum[row] += v;
        break;
      case Collect::kSumAll:
        sum[0] += v;
        break;
    }
    sum += sums(int(k));
  }
}

void Interpreter::end(void* const* out, std::byte* scratch) const {
  const double* sum = reinterpret_cast<double*>(scratch) + e_.inputs.size() + e_.code.size();
  for (size_t k = 0; k < e_.results.size(); ++k) {
    for (int64_t i = 0; i < sums(int(k)); ++i) write(out[k], out_[k], i, sum[i] * double(e_.results[k].scale));
    sum += sums(int(k));
  }
}

}  // namespace millpond::backend::reference
