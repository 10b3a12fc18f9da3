#include "backend/cpu/slow.h"

#include <algorithm>

#include "backend/backend.h"

namespace millpond::backend::cpu {
namespace {

constexpr int64_t kUnnoticed =
    1024;  // elements that take a plain loop about a microsecond: counters, labels of a batch

class Slow final : public Kernel {
 public:
  explicit Slow(std::unique_ptr<Kernel> twin) : twin_(std::move(twin)) {}
  std::span<const int> phases() const override { return twin_->phases(); }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    twin_->run(a, phase, block, member);
  }
  Bytes workspace() const override { return twin_->workspace(); }
  bool slow() const override { return true; }

 private:
  std::unique_ptr<Kernel> twin_;
};

}  // namespace

std::unique_ptr<Kernel> slow(const graph::Operator& op, const Request& request) {
  std::unique_ptr<Kernel> twin = host::as_host(reference_backend().make(op, request));
  int64_t most = 0;
  for (const auto* types : {&request.inputs, &request.outputs})
    for (const TensorType& t : *types) most = std::max(most, t.shape.size());
  if (most <= kUnnoticed) return twin;
  return std::make_unique<Slow>(std::move(twin));
}

bool all_float(std::span<const TensorType> types) {
  for (const TensorType& t : types)
    if (t.dtype != DType::kFloat32) return false;
  return true;
}

}  // namespace millpond::backend::cpu
