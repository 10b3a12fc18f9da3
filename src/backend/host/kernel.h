// host::Kernel: how the backends that compute on the host's processors run a kernel.
//
// A kernel's work is cut into phases, and a phase into blocks. Blocks of one phase may run in any order, on any thread,
// at the same time; a phase begins when the one before it has ended. Which thread runs a block must not change a bit of
// the result: sums across blocks go through scratch and are added in block order by a later phase.
// A kernel never allocates, never throws and keeps no state between calls.
#pragma once
#include <memory>
#include <span>

#include "backend/executor.h"
#include "backend/kernel.h"

namespace millpond::backend {

namespace host {

class Kernel : public backend::Kernel {
 public:
  /// Blocks of each phase. Little work is one phase of one block.
  virtual std::span<const int> phases() const {
    static constexpr int kOne[] = {1};
    return kOne;
  }
  /// `member` is the thread's number, 0 <= member < Request::threads, for scratch that is private to a thread. A phase
  /// of one block is member 0's.
  virtual void run(const Arguments& a, int phase, int block, int member) const noexcept = 0;
  /// Makes the machine code that run() calls, where it is made at run time. Before the first run; twice is once. A
  /// kernel that only describes itself, in a plan, never needs it.
  virtual void generate() {}
  /// Debug builds: throws Error when a run has found that what a user wrote does what it may not. After a run.
  virtual void throw_if_failed() const {}
};

/// A kernel that a host backend has made, as what it is.
inline Kernel& as_host(backend::Kernel& kernel) { return static_cast<Kernel&>(kernel); }
inline std::unique_ptr<Kernel> as_host(std::unique_ptr<backend::Kernel> kernel) {
  return std::unique_ptr<Kernel>(static_cast<Kernel*>(kernel.release()));
}
/// The same, ready to run.
inline std::unique_ptr<Kernel> ready(std::unique_ptr<backend::Kernel> kernel) {
  std::unique_ptr<Kernel> k = as_host(std::move(kernel));
  k->generate();
  return k;
}

/// Runs a kernel from start to end on the calling thread.
void run_alone(const Kernel& kernel, const Arguments& arguments);

}  // namespace host

// In these folders a kernel is one of the host's.
namespace cpu {
using host::Kernel;
}
namespace reference {
using host::Kernel;
}

}  // namespace millpond::backend
