// Program: a graph turned into calls of kernels with fixed pointers into one arena. Making it decides everything (passes,
// order, plan, kernels); binding gives it memory; running it allocates nothing.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "backend/kernel.h"
#include "base/team.h"
#include "graph/graph.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "runtime/variable.h"

namespace millpond::runtime {

struct Options {
  const backend::Backend* backend = nullptr;  // null: cpu_backend()
  int threads = 1;
  passes::Options passes;
  plan::Options plan;

  const backend::Backend& chosen_backend() const { return backend ? *backend : backend::cpu_backend(); }
  /// `passes`, without those that would make what the backend does not offer.
  passes::Options offered_passes() const;
};

/// Where an operand lies: in the arena (a buffer of the plan), in a variable, or in a constant of the program.
struct Place {
  enum class Kind : uint8_t { kBuffer, kVariable, kConstant } kind = Kind::kBuffer;
  int index = 0;  // of the buffer, or into variables()
  const void* constant = nullptr;
};

struct Call {
  const graph::Node* node = nullptr;
  std::unique_ptr<backend::Kernel> kernel;
  std::vector<Place> in, out;
  int scratch = -1;  // buffer of the plan, or -1
};

class Program {
 public:
  /// Every variable node of `graph` must carry the address of a runtime::Variable as its identity.
  /// Throws Error when an operator is refused by the backend.
  Program(std::string name, graph::Graph graph, const Options& options);

  const std::string& name() const { return name_; }
  const graph::Graph& graph() const { return graph_; }
  const std::vector<Call>& calls() const { return calls_; }
  const plan::Problem& problem() const { return problem_; }   // buffers named by account: "activations/conv1", ...
  const plan::Plan& plan() const { return plan_; }
  const std::vector<Variable*>& variables() const { return variables_; }
  const std::vector<passes::Record>& pass_records() const { return records_; }
  Bytes arena_bytes() const { return plan_.size; }

  /// Fixes every pointer. The arena must hold arena_bytes(), 64-byte aligned; variables must be placed. May be called again.
  void bind(std::byte* arena);
  /// Address of an input or output by name; after bind(). An input's bytes may be reused by the step after its last reader,
  /// so they are filled before every run; an output is good until the next run of any program in this arena.
  std::byte* input(std::string_view name) const;
  std::byte* output(std::string_view name) const;
  const graph::TensorType& input_type(std::string_view name) const;
  const graph::TensorType& output_type(std::string_view name) const;

  /// One step. `team` must have the number of threads the program was made for. One run at a time.
  void run(Team& team);
  /// Is there work that several threads share? If not, run() never asks its team for help.
  bool shared() const { return shared_; }

 private:
  // A stage is one phase of one call that several threads share, or a run of phases that one thread does alone.
  struct Step {
    const backend::Kernel* kernel;
    backend::Arguments arguments;
    int phase, blocks;
  };
  struct Stage {
    int first, last;  // steps [first, last)
    bool shared;
  };
  // Blocks of a shared stage: each member takes its own share first, then what others have not begun. A stage ends when all
  // its blocks are done, not when all members have come: a thread whose core is busy elsewhere holds up nobody.
  struct alignas(64) Claim {
    std::atomic<int> next{0};
    int end = 0;
  };
  struct alignas(64) Done {
    std::atomic<int> blocks{0};
  };

  void make_calls(const backend::Backend& backend);
  void make_buffers(bool in_place);
  void make_stages();
  void member(int m) noexcept;
  void poison_after(const backend::Kernel* kernel) const;  // debug builds, one thread
  std::byte* address(const Place& p) const;

  std::string name_;
  graph::Graph graph_;
  std::vector<passes::Record> records_;
  std::vector<Variable*> variables_;
  std::vector<Call> calls_;
  plan::Problem problem_;
  plan::Plan plan_;
  int threads_ = 1;
  std::map<std::string, Place, std::less<>> inputs_, outputs_;
  std::byte* arena_ = nullptr;
  std::vector<void*> pointers_;  // of all calls, one after the other
  std::vector<Step> steps_;
  std::vector<Stage> stages_;
  bool shared_ = false;               // some stage is
  std::unique_ptr<Claim[]> claims_;   // [stage][member]
  std::unique_ptr<Done[]> done_;      // [stage]
};

}  // namespace millpond::runtime
