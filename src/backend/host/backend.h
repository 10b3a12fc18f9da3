// HostBackend: memory and execution of the backends that compute on the host's processors. Their memory is segments of
// address space, of which a page is resident when it is first written; copies are copies; execution is over when run()
// returns.
#pragma once
#include "backend/backend.h"
#include "backend/host/kernel.h"

namespace millpond::backend {

class HostBackend : public Backend {
 public:
  Memory take(Bytes size, std::string account) const override;
  void write(std::byte* to, const void* from, Bytes size) const override;
  void read(void* to, const std::byte* from, Bytes size) const override;
  void zero(std::byte* at, Bytes size) const override;
  bool on_host() const override { return true; }
  FreeMemory memory_free() const override;
  std::unique_ptr<Executor> prepare(Script script) const override;
};

}  // namespace millpond::backend
