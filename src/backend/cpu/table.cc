// The cpu backend: one factory for each line of ops/list.inc, in the file of that base name.
#include <unordered_map>

#include "backend/cpu/isa.h"
#include "backend/cpu/slow.h"
#include "base/assert.h"
#include "ops/all.h"

namespace millpond::backend {
namespace cpu {

#define MP_OPERATOR(Class, name) std::unique_ptr<Kernel> name(const ops::Class& op, const Request& request);
#include "ops/list.inc"

namespace {

using Make = std::unique_ptr<Kernel> (*)(const graph::Operator&, const Request&);

const std::unordered_map<std::string_view, Make>& table() {
  static const std::unordered_map<std::string_view, Make> makers = {
#define MP_OPERATOR(Class, name) \
  {#name, [](const graph::Operator& op, const Request& r) { return cpu::name(static_cast<const ops::Class&>(op), r); }},
#include "ops/list.inc"
  };
  return makers;
}

class Cpu final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<Kernel> make(const graph::Operator& op, const Request& request) const override {
    const auto found = table().find(op.name());
    MP_ASSERT(found != table().end());
    if (isa() == Isa::kNone) return slow(op, request);
    return found->second(op, request);
  }
};

}  // namespace
}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::Cpu backend;
  return backend;
}

}  // namespace millpond::backend
