// Context: what runs eager tensors: the pool, the operators that are kept (runtime/eager.h), and the arena that all
// programs of functions share. One for the process, made when it is first needed, on the backend that is the default then.
//
// Operators, layers, losses and gradients take turns (`mutex`): kernels and programs that are kept have places for one
// run. A run of an operator by itself costs one lock and one look into a table beyond its kernel (bench/eager).
#pragma once
#include <initializer_list>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/team.h"
#include "eager/tensor.h"
#include "graph/key.h"
#include "runtime/eager.h"

namespace millpond::eager {

class Function;

class Context {
 public:
  static Context& get();
  /// For observers, who must not make it.
  static Context* if_made();

  const backend::Backend& backend;
  const int threads;
  Pool pool;
  std::recursive_mutex mutex;  // of all below; a layer of a user's may compute while it is built

  runtime::Eager operators;
  /// At least this large, and who holds addresses in it sees by `arena_version` that they are good.
  std::byte* arena(Bytes wanted);
  uint64_t arena_version() const { return arena_version_; }
  /// The team for a run: the caller alone where there is nothing to share.
  Team& alone() { return alone_; }

  /// Losses, activations and metrics, which belong to nobody: by key, those used longest ago go first.
  struct Kept {
    std::shared_ptr<Function> function;
    std::shared_ptr<const void> keep;  // what the key tells by its address
    Bytes bytes;
    uint64_t used = 0;
  };
  Kept* find(const graph::Key& key);
  Kept& keep(const graph::Key& key, Kept made);

  void set_bound(Bytes programs);
  Bytes programs() const { return operators.bytes() + kept_bytes_; }
  int64_t made() const { return operators.made() + functions_made; }
  int64_t functions_made = 0;  // programs
  /// Gives back what nobody uses: idle chunks and the arena.
  Bytes trim();

 private:
  Context();
  void make_room(const Kept* but);
  backend::Memory arena_;
  uint64_t arena_version_ = 1;
  Team alone_;
  std::unordered_map<graph::Key, Kept, graph::Key::Hash> kept_;
  Bytes kept_bytes_, kept_most_;
  uint64_t clock_ = 0;
};

/// Gives back what eager tensors hold and nobody uses, if there ever was one.
Bytes trim_eager();

using Op = std::shared_ptr<const graph::Operator>;

/// Runs one operator, and notes it on this thread's tapes. Throws what its shape rule does.
std::vector<Ref> apply_all(const Op& op, std::span<const Ref> inputs);
inline Ref apply(const Op& op, std::initializer_list<Ref> inputs) {
  return apply_all(op, {inputs.begin(), inputs.size()})[0];
}

}  // namespace millpond::eager
