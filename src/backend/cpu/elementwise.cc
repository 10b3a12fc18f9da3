#include "backend/cpu/elementwise.h"

#include "backend/cpu/fused.h"
#include "backend/cpu/slow.h"
#include "ops/all.h"
#include "ops/extent.h"

namespace millpond::backend::cpu {
namespace {

// Registers are float32: int32 would lose bits beyond 2^24 in arithmetic, so only casts and dropout's counter may read
// it.
bool fast(const graph::Operator& op, const Request& request) {
  const bool cast = op.name() == "cast", dropout = op.name() == "dropout";
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const DType t = request.inputs[i].dtype;
    if (t != DType::kFloat32 && t != DType::kBool && t != DType::kUInt8 &&
        !(t == DType::kInt32 && (cast || (dropout && i == 1))))
      return false;
  }
  return request.outputs[0].dtype == DType::kFloat32 || request.outputs[0].dtype == DType::kBool;
}

}  // namespace

std::unique_ptr<Kernel> elementwise(const graph::Operator& op, ops::Instruction instruction, const Request& request) {
  const Shape& full = request.outputs[0].shape;
  if (!fast(op, request) || full.size() == 0) return slow(op, request);
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
  i.immediate = float(op.rate);
  i.salt = op.salt;
  return elementwise(op, i, request);
}

std::unique_ptr<Kernel> cast(const ops::Cast& op, const Request& request) {
  if (op.dtype == DType::kBool) return elementwise(op, {ops::Function::k_cast_bool}, request);
  if (op.dtype != DType::kFloat32 || !fast(op, request) || request.outputs[0].shape.size() == 0)
    return slow(op, request);
  ops::Expression e{{ops::Extent::kFull}, {}, {{0}}};
  std::unique_ptr<Kernel> kernel = run_expression(e, 1, request.outputs[0].shape.size(), request);
  return kernel ? std::move(kernel) : slow(op, request);
}

std::unique_ptr<Kernel> broadcast_to(const ops::BroadcastTo& op, const Request& request) {
  const Shape& full = op.shape;
  const auto extent = ops::extent_in(request.inputs[0].shape, full);
  if (!extent || request.inputs[0].dtype != DType::kFloat32 || full.size() == 0) return slow(op, request);
  const int64_t cols = full.rank() ? full.back() : 1;
  std::unique_ptr<Kernel> kernel = run_expression({{*extent}, {}, {{0}}}, full.size() / cols, cols, request);
  return kernel ? std::move(kernel) : slow(op, request);
}

}  // namespace millpond::backend::cpu
