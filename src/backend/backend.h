// Backend: who computes. It owns its memory and the way it executes; everyone above it names operators, asks for memory
// and hands over scripts of calls, and never touches a tensor. A new backend is a folder that implements this class.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "backend/executor.h"
#include "backend/kernel.h"
#include "backend/memory.h"
#include "base/process.h"

namespace millpond::backend {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // Operators: every core operator of ops/list.inc, and those fusions that it offers.

  /// Throws Error when it refuses the operator.
  virtual std::unique_ptr<Kernel> make(const graph::Operator& op, const Request& request) const = 0;
  /// Whether passes may make this fusion: the base name of an MP_FUSION line of ops/list.inc, or ops::kEpilogue.
  virtual bool offers(std::string_view) const { return false; }
  /// False: nothing may be taken or run; programs can be planned only.
  virtual bool runs() const { return true; }

  // Memory. Addresses are 64-byte aligned and mean something to this backend alone, unless it computes on the host.

  /// Zeros, charged to `account`. Throws Error(kMemory) with the asked and the free sizes.
  virtual Memory take(Bytes size, std::string account) const = 0;
  /// Between the host and this backend's memory, after all that this thread has asked for before. Each returns when it
  /// is done.
  virtual void write(std::byte* to, const void* from, Bytes size) const = 0;
  virtual void read(void* to, const std::byte* from, Bytes size) const = 0;
  virtual void zero(std::byte* at, Bytes size) const = 0;
  /// Its memory is the host's: an address may be read and written by the host while no run is under way.
  virtual bool on_host() const { return false; }
  /// What may still be taken.
  virtual FreeMemory memory_free() const = 0;

  // Execution.

  virtual std::unique_ptr<Executor> prepare(Script script) const = 0;
  /// Returns when everything that this thread has asked for has been done.
  virtual void wait() const {}
};

const Backend& reference_backend();
const Backend& null_backend();
const Backend& cpu_backend();

/// Where models live unless somebody says otherwise: cpu_backend(), or what was set.
const Backend& default_backend();
/// For those who choose a backend for the whole process, before the first model is made. It must live as long as the
/// process.
void set_default_backend(const Backend& backend);

}  // namespace millpond::backend
