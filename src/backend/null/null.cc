// The null backend: a kernel for everything that runs nothing, so that a huge model can be planned in milliseconds.
#include "backend/kernel.h"
#include "base/assert.h"

namespace millpond::backend {

namespace {
class NullKernel final : public Kernel {
 public:
  void run(const Arguments&, int, int, int) const noexcept override { MP_ASSERT(!"the null backend plans and never runs"); }
};
class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }
  bool offers(std::string_view) const override { return true; }  // plans as the cpu backend's
  std::unique_ptr<Kernel> make(const graph::Operator&, const Request&) const override { return std::make_unique<NullKernel>(); }
  bool runs() const override { return false; }
};
}  // namespace

const Backend& null_backend() {
  static const NullBackend backend;
  return backend;
}

}  // namespace millpond::backend
