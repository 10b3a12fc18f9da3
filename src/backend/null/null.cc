// The null backend: a kernel for everything that runs nothing and no memory, so that a huge model can be planned in
// milliseconds.
#include "backend/backend.h"
#include "base/assert.h"

namespace millpond::backend {

namespace {
class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }
  bool offers(std::string_view) const override { return true; }  // plans as the cpu backend's
  std::unique_ptr<Kernel> make(const graph::Operator&, const Request&) const override {
    return std::make_unique<Kernel>();
  }
  bool runs() const override { return false; }
  Memory take(Bytes, std::string) const override { never(); }
  void write(std::byte*, const void*, Bytes) const override { never(); }
  void read(void*, const std::byte*, Bytes) const override { never(); }
  void zero(std::byte*, Bytes) const override { never(); }
  FreeMemory memory_free() const override { return memory_free_now(); }
  std::unique_ptr<Executor> prepare(Script) const override { never(); }

 private:
  [[noreturn]] static void never() {
    MP_ASSERT(!"the null backend plans and never runs");
    __builtin_unreachable();
  }
};
}  // namespace

const Backend& null_backend() {
  static const NullBackend backend;
  return backend;
}

}  // namespace millpond::backend
