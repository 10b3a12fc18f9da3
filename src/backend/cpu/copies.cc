// reshape and assign: bytes as they are. A reshape runs only where a view is impossible; an assign where the value
// could not be made in the variable's own bytes.
#include <cstring>

#include "backend/cpu/blocks.h"
#include "backend/host/kernel.h"
#include "ops/assign.h"
#include "ops/reshape.h"

namespace millpond::backend::cpu {
namespace {

class Copy final : public Kernel {
 public:
  Copy(int operand, Bytes bytes) : operand_(operand), runs_(bytes.value, 0.05, 4096), blocks_{runs_.blocks} {}
  std::span<const int> phases() const override { return blocks_; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    const int64_t from = runs_.begin(block);
    std::memcpy(a.output<std::byte>(0) + from, a.input<std::byte>(operand_) + from, size_t(runs_.end(block) - from));
  }

 private:
  int operand_;
  Runs runs_;
  int blocks_[1];
};

}  // namespace

std::unique_ptr<Kernel> reshape(const ops::Reshape&, const Request& request) {
  return std::make_unique<Copy>(0, request.outputs[0].bytes());
}
std::unique_ptr<Kernel> assign(const ops::Assign&, const Request& request) {
  return std::make_unique<Copy>(1, request.outputs[0].bytes());
}

}  // namespace millpond::backend::cpu
