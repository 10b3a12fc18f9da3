// Kernel: one operator made ready to run on given types. Made once when a program is built; run every step.
//
// A kernel's work is cut into phases, and a phase into blocks. Blocks of one phase may run in any order, on any thread,
// at the same time; a phase begins when the one before it has ended. Which thread runs a block must not change a bit of the
// result: sums across blocks go through scratch and are added in block order by a later phase.
// A kernel never allocates, never throws and keeps no state between calls.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "graph/operator.h"

namespace millpond::backend {

using graph::TensorType;

/// Where a kernel's operands lie: fixed when the program is made. An output may be the same address as an input only where
/// the operator's memory() facts allow it.
struct Arguments {
  void* const* in = nullptr;
  void* const* out = nullptr;
  std::byte* scratch = nullptr;  // Kernel::workspace() bytes, 64-byte aligned, contents undefined at the start of a call

  template <class T>
  const T* input(int i) const { return static_cast<const T*>(in[i]); }
  template <class T>
  T* output(int i) const { return static_cast<T*>(out[i]); }
};

struct Request {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  int threads = 1;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Blocks of each phase. Little work is one phase of one block.
  virtual std::span<const int> phases() const {
    static constexpr int kOne[] = {1};
    return kOne;
  }
  /// `member` is the thread's number, 0 <= member < Request::threads, for scratch that is private to a thread. A phase of one block
  /// is member 0's.
  virtual void run(const Arguments& a, int phase, int block, int member) const noexcept = 0;
  /// Scratch wanted for the duration of a call, for all threads together.
  virtual Bytes workspace() const { return Bytes{0}; }
  /// A plain loop where a fast kernel is missing; plans say so.
  virtual bool slow() const { return false; }
};

/// A backend can run every core operator of ops/list.inc, and those fusions that it offers.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<Kernel> make(const graph::Operator& op, const Request& request) const = 0;
  /// Whether passes may make this fusion: the base name of an MP_FUSION line of ops/list.inc, or ops::kEpilogue.
  virtual bool offers(std::string_view) const { return false; }
  /// False: nothing may be run or touched; programs can be planned only.
  virtual bool runs() const { return true; }
};

const Backend& reference_backend();
const Backend& null_backend();
const Backend& cpu_backend();

/// Runs a kernel from start to end on the calling thread (tests, constant folding).
void run_alone(const Kernel& kernel, const Arguments& arguments);

}  // namespace millpond::backend
