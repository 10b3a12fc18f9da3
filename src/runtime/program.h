// Program: a lowered graph that can be run. Lowering (runtime/lower.h) has decided everything (passes, order, plan,
// kernels); binding gives the program memory of its backend; running it allocates nothing. What runs it is the
// backend's executor.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/lower.h"

namespace millpond::runtime {

class Program {
 public:
  Program(std::string name, Lowered lowered) : name_(std::move(name)), lowered_(std::move(lowered)) {}
  Program(std::string name, graph::Graph graph, const Options& options)
      : Program(std::move(name), lower(std::move(graph), options)) {}

  const std::string& name() const { return name_; }
  const Lowered& lowered() const { return lowered_; }
  const backend::Backend& backend() const { return *lowered_.backend; }
  const graph::Graph& graph() const { return lowered_.graph; }
  const std::vector<Variable*>& variables() const { return lowered_.variables; }
  Bytes arena_bytes() const { return lowered_.plan.size; }

  /// Outputs whose sum over many runs is wanted: float32 scalars, each times its weight, in the order of run()'s sums.
  /// Before bind().
  void sum_outputs(std::vector<std::pair<std::string, double>> names_and_weights) {
    sums_ = std::move(names_and_weights);
  }
  /// Fixes every address. The arena must hold arena_bytes() of the backend's memory, 64-byte aligned; variables must be
  /// placed there too. May be called again.
  void bind(std::byte* arena);
  /// The host's side of an input or output by name; after bind(). Inputs are written after open() and before every run.
  /// An output is good from wait() until the next run of any program in this arena.
  std::byte* input(std::string_view name) const;
  const std::byte* output(std::string_view name) const;
  const graph::TensorType& input_type(std::string_view name) const;
  const graph::TensorType& output_type(std::string_view name) const;

  /// With Options::caller_operands: where the caller's operands (Lowered::callers) lie in the runs that are begun from
  /// now on. After bind().
  void hand_over(std::span<std::byte* const> addresses) { executor_->hand_over(addresses); }
  /// Returns when inputs may be written.
  void open() { executor_->open(); }
  /// Begins one step. `team` must have the number of threads the program was made for. One run at a time. sums:
  /// backend::Executor.
  void run(Team& team, double* sums = nullptr) { executor_->run(team, sums); }
  /// Returns when the steps that this thread has begun have ended.
  void wait() const { backend().wait(); }
  /// Is there work that several threads share? If not, run() never asks its team for help. After bind().
  bool shared() const { return executor_->shared(); }

 private:
  void place_constants();
  std::byte* address(const Lowered& l, const Place& p, std::byte* arena) const;
  backend::Script script_of(const Lowered& l, std::byte* arena) const;
  backend::Flow flow_of(const LoweredFlow& l, std::byte* scratch) const;
  std::vector<backend::Script::Dead> dead(const Lowered& l, std::byte* arena) const;

  std::string name_;
  Lowered lowered_;
  std::vector<std::pair<std::string, double>> sums_;
  std::byte* arena_ = nullptr;
  std::map<const Tensor*, backend::Memory> constant_memory_;  // where the backend does not see the host's memory
  std::unique_ptr<backend::Executor> executor_;
};

}  // namespace millpond::runtime
