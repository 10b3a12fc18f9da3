// host::Executor: runs the calls of a script in the host's own memory, by the threads of a team. What is asked of it is
// done when it returns; the operands themselves are the host's side of inputs and outputs.
#pragma once
#include <atomic>
#include <memory>

#include "backend/host/kernel.h"
#include "base/team.h"

namespace millpond::backend::host {

class Executor final : public backend::Executor {
 public:
  explicit Executor(Script script);
  std::byte* input(int i) const override { return script_.inputs[size_t(i)].at; }
  const std::byte* output(int i) const override { return script_.outputs[size_t(i)].at; }
  void hand_over(std::span<std::byte* const> addresses) override {
    for (const Script::Handed& h : script_.handed) script_.operands[size_t(h.operand)] = addresses[size_t(h.caller)];
  }
  void run(Team& team, double* sums) override;
  bool shared() const override { return shared_; }

 private:
  // A stage is one phase of one call that several threads share, or a run of phases that one thread does alone.
  struct Step {
    const Kernel* kernel;
    Arguments arguments;
    int phase, blocks;
  };
  struct Stage {
    int first, last;  // steps [first, last)
    bool shared;
  };
  // Blocks of a shared stage: each member takes its own share first, then what others have not begun. A stage ends when
  // all its blocks are done, not when all members have come: a thread whose core is busy elsewhere holds up nobody.
  struct alignas(64) Claim {
    std::atomic<int> next{0};
    int end = 0;
  };
  struct alignas(64) Done {
    std::atomic<int> blocks{0};
  };
  struct Summed {
    const float* value;
    double weight;
  };

  void together(Team& team);
  void member(int m) noexcept;
  void spoil_after(const Kernel* kernel) const;

  bool shared_ = false;  // some stage is
  std::vector<Step> steps_;
  std::vector<Summed> sums_;
  std::vector<Stage> stages_;
  std::unique_ptr<Claim[]> claims_;  // [stage][member]
  std::unique_ptr<Done[]> done_;     // [stage]
  Script script_;
};

}  // namespace millpond::backend::host
