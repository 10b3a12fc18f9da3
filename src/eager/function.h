// Function: a graph that is run on eager tensors as one planned program: a layer's call, a loss, the gradient of an
// operator. Its own gradient is another function, made of the same graph when it is first asked for, and so on for
// gradients of gradients.
//
//   graph inputs, variables ──▶ graph ──▶ results | saved
//                                            │        │       backward(wrt, dys): a function of what it reads of the
//                                            ▼        ▼       three (leaves, outputs, gradients of outputs)
//                            gradients of leaves ◀── backward
//
// Memory: calls and plan, about bytes(); its arena is the one that all functions share. Results, and what is saved, belong to
// the caller. Everything here is done under Context::mutex.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "eager/context.h"
#include "runtime/program.h"

namespace millpond::eager {

class Function : public std::enable_shared_from_this<Function> {
 public:
  /// The first `results` outputs are what callers want; the rest is for backward.
  Function(graph::Graph graph, size_t results);
  /// One operator, whose forward nobody runs here.
  static std::shared_ptr<Function> of(const Op& op, std::span<const TensorType> inputs);

  const std::vector<TensorType>& inputs() const { return inputs_; }
  const std::vector<TensorType>& outputs() const { return outputs_; }
  size_t results() const { return results_; }
  /// Read by the graph: leaves behind the inputs, whose memory a run looks at itself.
  const std::vector<runtime::Variable*>& variables() const { return variables_; }
  size_t leaves() const { return inputs_.size() + variables_.size(); }
  const TensorType& leaf(size_t i) const {
    return i < inputs_.size() ? inputs_[i] : variables_[i - inputs_.size()]->type();
  }
  bool floating(size_t leaf_number) const { return is_floating(leaf(leaf_number).dtype); }

  /// The same, with outputs behind the results that backward reads and cannot make again cheaply. Itself where there are
  /// none.
  std::shared_ptr<Function> saving();

  /// Which of its operands somebody must keep so that backward can be run.
  struct Reads {
    std::vector<bool> leaves, outputs;
  };
  const Reads& reads();

  struct Backward {
    enum class From : uint8_t { kLeaf, kOutput, kGradient };
    struct Read {
      From from;
      int number;
    };
    std::shared_ptr<Function> function;  // null: no leaf that is wanted depends on anything
    std::vector<Read> reads;             // its inputs
    std::vector<int> gives;              // result i is the gradient of this leaf
  };
  /// Gradients of the leaves `wrt` for gradients of the outputs `dys`. Throws Error(kUnsupported) naming an operator that
  /// has none.
  const Backward& backward(const std::vector<bool>& wrt, const std::vector<bool>& dys);

  /// `operands`: addresses of the inputs, then of the outputs.
  void run(Context& c, std::span<std::byte* const> operands);
  Bytes bytes() const;

 private:
  Backward make_backward(const std::vector<bool>& wrt, const std::vector<bool>& dys) const;

  graph::Graph graph_;
  size_t results_;
  std::vector<TensorType> inputs_, outputs_;
  std::vector<runtime::Variable*> variables_;
  std::vector<runtime::Variable*> changed_;
  std::optional<runtime::Program> program_;
  uint64_t bound_ = 0;  // Context::arena_version
  std::shared_ptr<Function> saving_;
  bool saves_nothing_ = false;
  std::optional<Reads> reads_;
  std::map<std::pair<std::vector<bool>, std::vector<bool>>, Backward> backwards_;
};

/// Runs it, and notes it on this thread's tapes. `save`: where there are some, what backward reads is kept rather than
/// made again.
std::vector<Ref> call(const std::shared_ptr<Function>& f, std::span<const Ref> inputs, bool save);

}  // namespace millpond::eager
