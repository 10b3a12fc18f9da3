#include <atomic>

#include "backend/backend.h"

namespace millpond::backend {
namespace {
constinit std::atomic<const Backend*> chosen{nullptr};  // may be set before anything of this file is made
}

const Backend& default_backend() {
  const Backend* b = chosen.load(std::memory_order_acquire);
  return b ? *b : cpu_backend();
}
void set_default_backend(const Backend& backend) { chosen.store(&backend, std::memory_order_release); }

}  // namespace millpond::backend
