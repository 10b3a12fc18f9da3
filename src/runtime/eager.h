// Eager: operators run by themselves, one call at a time, on operands that belong to the caller. A kernel is made when
// an operator is first run on operands of given types, and kept for the next time; what is kept is bounded in bytes,
// and what was used longest ago goes first.
// Memory: scratch and machine code of the kernels that are kept, account eager/scratch and process/jit; at most `most`
// together with the tables. A call that finds its kernel takes none.
// One thread at a time.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "graph/key.h"
#include "graph/operator.h"

namespace millpond::runtime {

class Eager {
 public:
  Eager(const backend::Backend& backend, int threads, Bytes most) : backend_(backend), threads_(threads), most_(most) {}

  /// One operator on operands of given types.
  struct Entry {
    std::shared_ptr<const graph::Operator> op;  // kernels may refer to it
    std::vector<graph::TensorType> outputs;
    std::unique_ptr<backend::Kernel> kernel;
    backend::Memory scratch;
    std::unique_ptr<backend::Executor> executor;
    std::shared_ptr<void> beside;  // what the caller keeps with it: its gradient (eager/context.cc)
    Bytes bytes, weight_beside;
    int64_t weighed = -1;  // for the caller: when it weighed what lies beside
    uint64_t used = 0;
  };
  /// For a caller who looks once for types and run. Good until another operator is asked for.
  Entry& get(const std::shared_ptr<const graph::Operator>& op, std::span<const graph::TensorType> inputs) {
    return find(op, inputs);
  }
  void run(const Entry& e, std::span<std::byte* const> operands, Team& team) {
    e.executor->hand_over(operands);
    e.executor->run(team, nullptr);
  }

  /// Types of what the operator makes of such operands. Throws Error where the operator or the backend refuses them.
  const std::vector<graph::TensorType>& outputs(const std::shared_ptr<const graph::Operator>& op,
                                                std::span<const graph::TensorType> inputs) {
    return find(op, inputs).outputs;
  }
  /// Begins one call. `operands`: addresses of the backend's memory, 64-byte aligned, inputs first and then outputs;
  /// outputs do not overlap inputs, but where the operator's memory() facts allow or demand it. They must be there
  /// until Backend::wait().
  void run(const std::shared_ptr<const graph::Operator>& op, std::span<const graph::TensorType> inputs,
           std::span<std::byte* const> operands, Team& team) {
    run(find(op, inputs), operands, team);
  }

  void set_most(Bytes most) {
    most_ = most;
    make_room(nullptr);
  }
  /// What lies beside an entry counts with it.
  void weigh(Entry& e, Bytes beside) {
    bytes_ += beside - e.weight_beside;
    e.bytes += beside - e.weight_beside;
    e.weight_beside = beside;
    make_room(&e);
  }

  size_t kept() const { return entries_.size(); }
  Bytes bytes() const { return bytes_; }
  /// Kernels made so far: more than were kept when some had to go.
  int64_t made() const { return made_; }

 private:
  Entry& find(const std::shared_ptr<const graph::Operator>& op, std::span<const graph::TensorType> inputs);
  Entry& make(const graph::Key& key, const std::shared_ptr<const graph::Operator>& op,
              std::span<const graph::TensorType> inputs);
  void make_room(const Entry* but);

  const backend::Backend& backend_;
  int threads_;
  Bytes most_, bytes_;
  uint64_t clock_ = 0;
  int64_t made_ = 0;
  std::unordered_map<graph::Key, Entry, graph::Key::Hash> entries_;
};

}  // namespace millpond::runtime
