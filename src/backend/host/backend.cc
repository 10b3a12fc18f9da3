#include "backend/host/backend.h"

#include <cstring>

#include "backend/host/executor.h"
#include "base/segment.h"

namespace millpond::backend {

Memory HostBackend::take(Bytes size, std::string account) const {
  auto segment = std::make_shared<Segment>(size, std::move(account));
  std::byte* const at = segment->data();
  const Bytes whole = segment->size();
  return Memory(*this, at, whole, std::move(segment));
}

void HostBackend::write(std::byte* to, const void* from, Bytes size) const {
  std::memcpy(to, from, size_t(size.value));
}
void HostBackend::read(void* to, const std::byte* from, Bytes size) const { std::memcpy(to, from, size_t(size.value)); }
void HostBackend::zero(std::byte* at, Bytes size) const { std::memset(at, 0, size_t(size.value)); }
FreeMemory HostBackend::memory_free() const { return memory_free_now(); }
std::unique_ptr<Executor> HostBackend::prepare(Script script) const {
  return std::make_unique<host::Executor>(std::move(script));
}

}  // namespace millpond::backend
