// host::Executor: runs the calls of a script in the host's own memory, by the threads of a team. What is asked of it is
// done when it returns; the operands themselves are the host's side of inputs and outputs.
#pragma once
#include <atomic>
#include <memory>

#include "backend/host/kernel.h"
#include "base/team.h"

namespace millpond::backend::host {

struct Loop;

/// The calls of one script, made ready: a program's, or those of a body of control flow.
///
/// Several members of a team run it together; which of them come, and when, is nobody's to say, but for member 0. A run
/// of it has a number, its round, and every counter only rises, so that a member that is late finds its round's work
/// done and goes on.
struct Sequence {
  Sequence(Script script, int threads);
  Sequence(Sequence&&) = delete;
  ~Sequence();

  // A stage is one phase of one call that several threads share, or a run of phases that one thread does alone, or a
  // loop whose body has shared stages.
  struct Step {
    const Kernel* kernel;  // null: control flow
    Arguments arguments;
    int phase, blocks;
    int call;
    Loop* loop;
  };
  struct Stage {
    int first, last;  // steps [first, last)
    bool shared;
    Loop* loop;  // not null: one that members run together
  };
  // Blocks of a shared stage: each member takes its own share first, then what others have not begun. A stage ends when
  // all its blocks are done, not when all members have come: a thread whose core is busy elsewhere holds up nobody.
  struct alignas(64) Claim {
    std::atomic<int64_t> next{0};  // blocks of this member's share that were ever begun
    int begin = 0, size = 0;
  };
  struct alignas(64) Done {
    std::atomic<int64_t> blocks{0};  // that were ever done
  };

  /// All of it on the calling thread.
  void alone();
  /// A member's part of a round.
  void member(int m, int64_t round) noexcept;
  /// After a run: host::Kernel::throw_if_failed of all kernels.
  void throw_if_failed() const;
  /// Before round 0 of a run.
  void reset();
  void hand_over(std::span<std::byte* const> addresses) {
    for (const Script::Handed& h : script.handed) script.operands[size_t(h.operand)] = addresses[size_t(h.caller)];
  }

  Script script;
  int threads;
  bool shared = false;  // some stage is
  std::vector<Step> steps;
  std::vector<Stage> stages;
  std::vector<std::unique_ptr<Loop>> loops;  // of script.flows
  std::unique_ptr<Claim[]> claims;           // [stage][member]
  std::unique_ptr<Done[]> done;              // [stage]

 private:
  void run_step(const Step& s) const;
  void spoil_after(int call) const;
};

class Executor final : public backend::Executor {
 public:
  explicit Executor(Script script);
  std::byte* input(int i) const override { return all_.script.inputs[size_t(i)].at; }
  const std::byte* output(int i) const override { return all_.script.outputs[size_t(i)].at; }
  void hand_over(std::span<std::byte* const> addresses) override { all_.hand_over(addresses); }
  void run(Team& team, double* sums) override;
  bool shared() const override { return all_.shared; }

 private:
  struct Summed {
    const float* value;
    double weight;
  };
  Sequence all_;
  std::vector<Summed> sums_;
};

}  // namespace millpond::backend::host
