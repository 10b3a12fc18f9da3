// The reference backend: one maker for each line of ops/list.inc, in the file of its name; a missing one does not link.
#include <typeindex>
#include <unordered_map>

#include "backend/host/backend.h"
#include "base/assert.h"
#include "ops/all.h"

namespace millpond::backend {

namespace reference {
#define MP_OPERATOR(type, name) std::unique_ptr<Kernel> name(const ops::type& op, const Request& request);
#include "ops/list.inc"

namespace {
using Maker = std::unique_ptr<Kernel> (*)(const graph::Operator&, const Request&);

class ReferenceBackend final : public HostBackend {
 public:
  std::string_view name() const override { return "reference"; }
  bool offers(std::string_view) const override { return true; }  // the slow twin of every kernel
  std::unique_ptr<backend::Kernel> make(const graph::Operator& op, const Request& request) const override {
    static const std::unordered_map<std::type_index, Maker> makers = {
#define MP_OPERATOR(type, name) \
  {typeid(ops::type),           \
   [](const graph::Operator& o, const Request& r) { return reference::name(static_cast<const ops::type&>(o), r); }},
#include "ops/list.inc"
    };
    const auto found = makers.find(typeid(op));
    MP_ASSERT(found != makers.end());
    return found->second(op, request);
  }
};
}  // namespace
}  // namespace reference

const Backend& reference_backend() {
  static const reference::ReferenceBackend backend;
  return backend;
}

}  // namespace millpond::backend
