// Executor: the calls of one program with every address fixed, made by the backend whose memory the addresses are.
//
//      host                        backend
//   input(i)   ── run() takes ──▶  Script::inputs[i] ─▶ calls in their order ─▶ Script::outputs[i]
//   output(i)  ◀── after wait() ───────────────────────────────────────────────────────┘
//
// The host never touches a backend's memory. It writes a batch into input(i), which is ordinary memory, and finds
// results in output(i). A backend that computes in the host's own memory gives the operands themselves, and nothing is
// copied.
//
// Order: what one thread asks of a backend is done in the order in which it asks. run() may return before the run has
// ended; the host's side of the inputs may be written again after open(), everything else that a run changes may be
// looked at after Backend::wait(). Another thread may go on with the same memory once the first has waited.
// Memory: the lists of the script; a backend apart from the host adds the host's side of inputs and outputs. run()
// takes none.
#pragma once
#include <span>
#include <vector>

#include "backend/kernel.h"

namespace millpond {
class Team;
}

namespace millpond::backend {

/// Where a call's operands lie. An output may be the same address as an input only where the operator's memory() facts
/// allow it.
struct Arguments {
  void* const* in = nullptr;
  void* const* out = nullptr;
  std::byte* scratch =
      nullptr;  // Kernel::workspace() bytes, 64-byte aligned, contents undefined at the start of a call

  template <class T>
  const T* input(int i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(int i) const {
    return static_cast<T*>(out[i]);
  }
};

struct Flow;

/// What an executor is made of. Kernels are borrowed from the program; all addresses are the backend's.
struct Script {
  struct Call {
    Kernel* kernel;       // null: control flow
    Arguments arguments;  // point into `operands`
    int flow = -1;        // which of `flows`
  };
  struct Operand {
    std::byte* at;
    Bytes size;
  };
  /// A float32 scalar whose mean over many runs is wanted: run() adds value * weight.
  struct Sum {
    int output;
    double weight;
  };
  /// An operand that belongs to the caller: operands[operand] is the address that hand_over() has for it.
  struct Handed {
    int operand, caller;
  };
  /// Bytes that nobody reads after a call. Debug builds spoil them where they can.
  struct Dead {
    int call;
    Operand bytes;
  };
  std::vector<void*> operands;
  std::vector<Call> calls;
  std::vector<Flow> flows;
  std::vector<Operand> inputs, outputs;
  std::vector<Sum> sums;
  std::vector<Handed> handed;
  std::vector<Dead> dead;
  int threads = 1;
};

/// A call that runs scripts instead of a kernel: ops/scan.h, ops/while_loop.h, ops/cond.h. A body's operands that
/// change from step to step are its Script::handed: body inputs in their order, then body outputs in theirs. Where they
/// lie in step t, given the call's arguments (in the order of the operator's operands and outputs):
///
///   carry, first step           in[k]                       its result in the last step   out[k]
///   carry, any other step       where the step before put it: the two places take turns (in_place: always out[k],
///   where
///                               in[k] has been copied first)
///   element of a sequence       in[carries + i] + t * stride, copied to its bounce first if it has one
///   element of a stack          out[carries + i] + t * stride, copied there from its bounce afterwards
///   shared                      in[carries + sequences + i]
///
/// Places, bounces and the arena that the body's other operands lie in are parts of the call's scratch. `reverse`: t
/// goes from the last element to the first. A while_loop has carries and shared only; its carries are never in place,
/// and out[k] is copied from where the last step left it. A cond has shared only, behind the bool.
struct Flow {
  enum class Kind : uint8_t { kScan, kWhile, kCond };
  struct Carry {
    Bytes size;
    bool in_place = false;
    std::byte* places[2] = {nullptr, nullptr};
  };
  struct Elements {  // of a sequence or stack
    Bytes stride;
    std::byte* bounce = nullptr;  // 64-byte aligned, where the elements are not
  };
  Kind kind = Kind::kScan;
  int64_t length = 0;  // of a while_loop: the most steps, 0: no bound
  bool reverse = false;
  std::vector<Carry> carries;
  std::vector<Elements> sequences, stacks;
  int shared = 0;
  std::byte* answer = nullptr;  // kWhile: where the condition puts its bool
  std::vector<Script> bodies;   // kScan: the step; kWhile: condition, step; kCond: for true, for false
};

class Executor {
 public:
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// The host's side of an input: the same address as long as the executor lives. A run may leave anything there, so it
  /// is written before every run.
  virtual std::byte* input(int i) const = 0;
  /// The host's side of an output: good from wait() until the next run in the same arena.
  virtual const std::byte* output(int i) const = 0;
  /// Where the caller's operands lie in the runs that are begun from now on: addresses of the backend's memory, 64-byte
  /// aligned, which must be there until the runs have ended. Nothing is copied.
  virtual void hand_over(std::span<std::byte* const> addresses) = 0;
  /// Returns when the inputs of runs that were begun before have been taken, so that they may be written.
  void open() {
    if (takes_inputs_late_) take_inputs();
  }
  /// Begins one run. `team` has Script::threads members. sums[k] += output * weight for each Sum of the script, in
  /// double and in the order of the runs; null: nobody wants them. Sums are host memory that must be there until
  /// wait().
  virtual void run(Team& team, double* sums) = 0;
  /// Is there work that several threads of a team share? If not, run() never asks its team for help.
  virtual bool shared() const { return false; }

 protected:
  Executor() = default;
  virtual void take_inputs() {}
  bool takes_inputs_late_ = false;
};

}  // namespace millpond::backend
