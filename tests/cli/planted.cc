// The program as it is, except that one kernel keeps memory of its own that no plan knows of: MILLPOND_PLANT bytes,
// touched when it runs. For the test that the check of memory from outside sees it. Made by wrapping cpu_backend() at
// link time.
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "backend/host/backend.h"

namespace millpond::backend {
namespace {

class Hiding final : public host::Kernel {
 public:
  Hiding(std::unique_ptr<host::Kernel> kernel, size_t bytes) : kernel_(std::move(kernel)), bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hidden_ = p == MAP_FAILED ? nullptr : static_cast<char*>(p);
  }
  ~Hiding() override {
    if (hidden_) munmap(hidden_, bytes_);
  }
  std::span<const int> phases() const override { return kernel_->phases(); }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    if (hidden_ && !touched_.exchange(true)) std::memset(hidden_, 1, bytes_);
    kernel_->run(a, phase, block, member);
  }
  void generate() override { kernel_->generate(); }
  Bytes workspace() const override { return kernel_->workspace(); }
  bool slow() const override { return kernel_->slow(); }

 private:
  std::unique_ptr<host::Kernel> kernel_;
  size_t bytes_;
  char* hidden_;
  mutable std::atomic<bool> touched_{false};
};

class HidingBackend final : public HostBackend {
 public:
  explicit HidingBackend(const Backend& real) : real_(real) {}
  std::string_view name() const override { return real_.name(); }
  bool runs() const override { return real_.runs(); }
  std::unique_ptr<Kernel> make(const graph::Operator& op, const Request& request) const override {
    std::unique_ptr<Kernel> kernel = real_.make(op, request);
    const char* plant = getenv("MILLPOND_PLANT");
    const bool chosen = op.name() == "softmax_cross_entropy";  // one call of the step
    if (!plant || !chosen) return kernel;
    return std::make_unique<Hiding>(host::as_host(std::move(kernel)), size_t(std::strtoull(plant, nullptr, 10)));
  }

 private:
  const Backend& real_;
};

}  // namespace
}  // namespace millpond::backend

extern "C" {
const millpond::backend::Backend& real_cpu_backend() __asm__("__real__ZN8millpond7backend11cpu_backendEv");
const millpond::backend::Backend& wrapped_cpu_backend() __asm__("__wrap__ZN8millpond7backend11cpu_backendEv");
const millpond::backend::Backend& wrapped_cpu_backend() {
  static const millpond::backend::HidingBackend hiding(real_cpu_backend());
  return hiding;
}
}
