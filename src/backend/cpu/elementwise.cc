#include "backend/cpu/elementwise.h"

#include "backend/cpu/fused.h"
#include "backend/cpu/slow.h"
#include "ops/all.h"
#include "ops/extent.h"

namespace millpond::backend::cpu {
std::unique_ptr<Kernel> elementwise(const graph::Operator& op, ops::Instruction instruction, const Request& request) {
  const Shape& full = request.outputs[0].shape;
  if (full.size() == 0) return slow(op, request);
  ops::Expression e;
  int16_t* slots[] = {&instruction.a, &instruction.b, &instruction.c};
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const auto extent = ops::extent_in(request.inputs[i].shape, full);
    if (!extent) return slow(op, request);
    e.inputs.push_back(*extent);
    *slots[i] = int16_t(i);
  }
  e.code.push_back(instruction);
  e.results.push_back({int16_t(request.inputs.size())});
  const int64_t cols = full.rank() ? full.back() : 1;
  std::unique_ptr<Kernel> kernel = run_expression(e, full.size() / cols, cols, request);
  return kernel ? std::move(kernel) : slow(op, request);
}

std::unique_ptr<Kernel> unary(const ops::Unary& op, const Request& request) {
  return elementwise(op, {op.function}, request);
}

// A counter and what is added to it.
template <class T>
class AddScalars final : public Kernel {
 public:
  void run(const Arguments& a, int, int, int) const noexcept override {
    *a.output<T>(0) = *a.input<T>(0) + *a.input<T>(1);
  }
};

std::unique_ptr<Kernel> binary(const ops::Binary& op, const Request& request) {
  if (op.function == ops::Function::k_add && request.outputs[0].shape.size() == 1) {
    if (request.outputs[0].dtype == DType::kInt64) return std::make_unique<AddScalars<int64_t>>();
    if (request.outputs[0].dtype == DType::kInt32) return std::make_unique<AddScalars<int32_t>>();
  }
  return elementwise(op, {op.function}, request);
}

std::unique_ptr<Kernel> select(const ops::Select& op, const Request& request) {
  return elementwise(op, {ops::Function::k_select}, request);
}

std::unique_ptr<Kernel> dropout(const ops::Dropout& op, const Request& request) {
  ops::Instruction i{ops::Function::k_dropout};
  i.immediate = op.rate;
  i.salt = op.salt;
  return elementwise(op, i, request);
}

std::unique_ptr<Kernel> cast(const ops::Cast& op, const Request& request) {
  ops::Instruction i{ops::Function::k_cast};
  i.dtype = op.dtype;
  return elementwise(op, i, request);
}

std::unique_ptr<Kernel> broadcast_to(const ops::BroadcastTo& op, const Request& request) {
  const Shape& full = op.shape;
  const auto extent = ops::extent_in(request.inputs[0].shape, full);
  if (!extent || full.size() == 0) return slow(op, request);
  const int64_t cols = full.rank() ? full.back() : 1;
  std::unique_ptr<Kernel> kernel = run_expression({{*extent}, {}, {{0}}}, full.size() / cols, cols, request);
  return kernel ? std::move(kernel) : slow(op, request);
}

}  // namespace millpond::backend::cpu
