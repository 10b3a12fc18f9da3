#include "backend/evaluate.h"

#include "backend/backend.h"
#include "backend/host/kernel.h"

namespace millpond::backend {

std::vector<Tensor> evaluate(const graph::Operator& op, std::span<const Tensor> inputs,
                             std::span<const graph::TensorType> outputs) {
  Request request;
  std::vector<void*> in, out;
  for (const Tensor& t : inputs) {
    request.inputs.push_back({t.dtype(), t.shape()});
    in.push_back(const_cast<std::byte*>(t.data()));
  }
  std::vector<Tensor> results;
  for (const graph::TensorType& t : outputs) {
    request.outputs.push_back(t);
    results.emplace_back(t.dtype, t.shape, "constants");
    out.push_back(results.back().data());
  }
  const auto kernel = host::ready(reference_backend().make(op, request));
  const Tensor scratch(DType::kUInt8, Shape{kernel->workspace().value + 64}, "constants");
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t{63});
  host::run_alone(*kernel, {in.data(), out.data(), aligned});
  return results;
}

}  // namespace millpond::backend
