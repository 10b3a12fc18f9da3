// Program: a graph turned into calls of kernels with fixed addresses in one arena. Making it decides everything (passes,
// order, plan, kernels); binding gives it memory of its backend; running it allocates nothing. What runs it is the backend's executor.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "runtime/variable.h"

namespace millpond::runtime {

struct Options {
  const backend::Backend* backend = nullptr;  // null: backend::default_backend()
  int threads = 1;
  passes::Options passes;
  plan::Options plan;

  const backend::Backend& chosen_backend() const { return backend ? *backend : backend::default_backend(); }
  /// `passes`, without those that would make what the backend does not offer.
  passes::Options offered_passes() const;
};

/// Where an operand lies: in the arena (a buffer of the plan), in a variable, or in a constant of the program.
struct Place {
  enum class Kind : uint8_t { kBuffer, kVariable, kConstant } kind = Kind::kBuffer;
  int index = 0;  // of the buffer, the variable or the constant
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
  const backend::Backend& backend() const { return *backend_; }
  const graph::Graph& graph() const { return graph_; }
  const std::vector<Call>& calls() const { return calls_; }
  const plan::Problem& problem() const { return problem_; }   // buffers named by account: "activations/conv1", ...
  const plan::Plan& plan() const { return plan_; }
  const std::vector<Variable*>& variables() const { return variables_; }
  const std::vector<passes::Record>& pass_records() const { return records_; }
  Bytes arena_bytes() const { return plan_.size; }

  /// Outputs whose sum over many runs is wanted: float32 scalars, each times its weight, in the order of run()'s sums. Before bind().
  void sum_outputs(std::vector<std::pair<std::string, double>> names_and_weights) { sums_ = std::move(names_and_weights); }
  /// Fixes every address. The arena must hold arena_bytes() of the backend's memory, 64-byte aligned; variables must be placed there
  /// too. May be called again.
  void bind(std::byte* arena);
  /// The host's side of an input or output by name; after bind(). Inputs are written after open() and before every run. An output is
  /// good from wait() until the next run of any program in this arena.
  std::byte* input(std::string_view name) const;
  const std::byte* output(std::string_view name) const;
  const graph::TensorType& input_type(std::string_view name) const;
  const graph::TensorType& output_type(std::string_view name) const;

  /// Returns when inputs may be written.
  void open() { executor_->open(); }
  /// Begins one step. `team` must have the number of threads the program was made for. One run at a time. sums: backend::Executor.
  void run(Team& team, double* sums = nullptr) { executor_->run(team, sums); }
  /// Returns when the steps that this thread has begun have ended.
  void wait() const { backend_->wait(); }
  /// Is there work that several threads share? If not, run() never asks its team for help. After bind().
  bool shared() const { return executor_->shared(); }

 private:
  void make_calls();
  void make_buffers(bool in_place);
  void place_constants();
  std::byte* address(const Place& p) const;
  std::vector<backend::Script::Dead> dead() const;

  std::string name_;
  const backend::Backend* backend_;
  graph::Graph graph_;
  std::vector<passes::Record> records_;
  std::vector<Variable*> variables_;
  std::vector<Tensor> constants_;
  std::vector<Call> calls_;
  plan::Problem problem_;
  plan::Plan plan_;
  int threads_ = 1;
  std::map<std::string, Place, std::less<>> inputs_, outputs_;
  std::vector<std::pair<std::string, double>> sums_;
  std::byte* arena_ = nullptr;
  std::vector<backend::Memory> constant_memory_;  // where the backend does not see the host's memory
  std::unique_ptr<backend::Executor> executor_;
};

}  // namespace millpond::runtime
