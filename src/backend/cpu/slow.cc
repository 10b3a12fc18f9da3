#include "backend/cpu/slow.h"

#include "ops/all.h"

namespace millpond::backend::cpu {
namespace {

class Slow final : public Kernel {
 public:
  explicit Slow(std::unique_ptr<Kernel> twin) : twin_(std::move(twin)) {}
  std::span<const int> phases() const override { return twin_->phases(); }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override { twin_->run(a, phase, block, member); }
  Bytes workspace() const override { return twin_->workspace(); }
  bool slow() const override { return true; }

 private:
  std::unique_ptr<Kernel> twin_;
};

}  // namespace

std::unique_ptr<Kernel> slow(const graph::Operator& op, const Request& request) {
  return std::make_unique<Slow>(reference_backend().make(op, request));
}

bool all_float(std::span<const TensorType> types) {
  for (const TensorType& t : types)
    if (t.dtype != DType::kFloat32) return false;
  return true;
}

// Operators without a fast kernel of their own yet: delete the line when the kernel's file comes.
#define MP_SLOW(Class, name) \
  std::unique_ptr<Kernel> name(const ops::Class& op, const Request& request) { return slow(op, request); }
#undef MP_SLOW

}  // namespace millpond::backend::cpu
