// rule: an optimiser's step on one weight: the rule's expression, one element at a time. Shared by optimizer_step,
// dense_update and dense_backward; the slow twin of the rules that fast kernels have written out by hand. Memory: the
// expression's registers as workspace.
#pragma once
#include "backend/reference/expression.h"
#include "backend/reference/types.h"
#include "ops/rule.h"

namespace millpond::backend::reference {

class RuleOnElements {
 public:
  RuleOnElements(const ops::Rule& rule, DType dtype, int64_t size)
      : rule_(rule), interpreter_(make(rule, dtype, size)) {}
  Bytes workspace() const { return interpreter_.workspace(); }

  /// Weight and slots of a parameter are operands `input` and up, and outputs `output` and up: the operands' own bytes.
  /// Where a test gave them bytes of their own, they are copied there first.
  template <class T>
  class Parameter {
   public:
    Parameter(const RuleOnElements& on, const Arguments& a, int input, int output, int64_t size, const void* scalars,
              std::byte* scratch)
        : on_(on), scratch_(scratch) {
      for (int k = 0; k <= on.rule_.slot_count(); ++k) {
        const T* from = a.input<T>(input + k);
        T* to = a.output<T>(output + k);
        if (from != to) std::copy(from, from + size, to);
        in_[k] = out_[k] = to;
      }
      for (int k = 0; k < on.rule_.scalar_count(); ++k)
        in_[1 + on.rule_.slot_count() + k] =
            static_cast<std::byte*>(const_cast<void*>(scalars)) + k * size_of(on.rule_.dtype).value;
    }
    const T* weights() const { return static_cast<const T*>(out_[0]); }
    /// Element i after a step along the gradient g.
    void step(int64_t i, double g) const { on_.interpreter_.at(0, i, g, in_, out_, scratch_); }

   private:
    const RuleOnElements& on_;
    std::byte* scratch_;
    void* in_[1 + ops::Rule::kMostSlots + ops::Rule::kMostScalars];
    void* out_[1 + ops::Rule::kMostSlots];
  };

 private:
  static Interpreter make(const ops::Rule& rule, DType dtype, int64_t size) {
    std::vector<TensorType> operands(size_t(1 + rule.slot_count()), TensorType{dtype, {size}});
    const std::vector<TensorType> results = operands;
    operands.insert(operands.end(), size_t(rule.scalar_count()), TensorType{rule.dtype, {}});
    return {rule.update, 1, 1, size, operands, results, is_half(dtype) ? DType::kFloat32 : dtype};
  }
  ops::Rule rule_;
  Interpreter interpreter_;
};

}  // namespace millpond::backend::reference
