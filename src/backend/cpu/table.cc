// The cpu backend: a maker for each line of cpu/list.inc. What it has no fast kernel for runs the reference kernel.
#include <unordered_map>

#include "backend/cpu/isa.h"
#include "backend/cpu/slow.h"
#include "backend/cpu/widened.h"
#include "backend/host/backend.h"
#include "ops/all.h"

namespace millpond::backend {
namespace cpu {

#define MP_KERNEL(Class, name) std::unique_ptr<Kernel> name(const ops::Class& op, const Request& request);
#include "backend/cpu/list.inc"

namespace {

struct Entry {
  Maker make;
  bool only_float;
};

const std::unordered_map<std::string_view, Entry>& table() {
#define MP_ENTRY(Class, name, only_float)                                                                         \
  {#name,                                                                                                         \
   {[](const graph::Operator& op, const Request& r) { return cpu::name(static_cast<const ops::Class&>(op), r); }, \
    only_float}},
  static const std::unordered_map<std::string_view, Entry> makers = {
#define MP_KERNEL(Class, name) MP_ENTRY(Class, name, false)
#define MP_FLOAT_KERNEL(Class, name) MP_ENTRY(Class, name, true)
#include "backend/cpu/list.inc"
  };
  return makers;
}

class Cpu final : public HostBackend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<backend::Kernel> make(const graph::Operator& op, const Request& request) const override {
    const auto found = table().find(op.name());
    if (isa() == Isa::kNone || found == table().end()) return slow(op, request);
    if (found->second.only_float)
      if (auto kernel = widened(op, request, found->second.make)) return kernel;
    return found->second.make(op, request);
  }
  bool offers(std::string_view fusion) const override { return fusion == ops::kEpilogue || table().contains(fusion); }
};

}  // namespace
}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::Cpu backend;
  return backend;
}

}  // namespace millpond::backend
