// Tape: what GradientTape is. A list of calls (an operator, a function, a user's own with a gradient), each with the ids of
// what it read and made, and the values that its backward reads. The gradient goes back through the list; what it computes
// is noted on the other tapes of the thread like anything else.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "eager/function.h"
#include "millpond/gradient_tape.h"

namespace millpond::eager {

/// A set of ids, most of them met once: open addressing, no memory for each.
class Ids {
 public:
  bool has(uint64_t id) const {
    if (table_.empty()) return false;
    for (size_t at = place(id);; at = (at + 1) & (table_.size() - 1)) {
      if (table_[at] == id) return true;
      if (table_[at] == 0) return false;
    }
  }
  void add(uint64_t id) {
    if (2 * (count_ + 1) > table_.size()) grow();
    size_t at = place(id);
    for (; table_[at] != 0; at = (at + 1) & (table_.size() - 1))
      if (table_[at] == id) return;
    table_[at] = id;
    ++count_;
  }
  void clear() {
    table_.clear();
    count_ = 0;
  }

 private:
  size_t place(uint64_t id) const { return (id * 0x9e3779b97f4a7c15ull >> 20) & (table_.size() - 1); }
  void grow() {
    std::vector<uint64_t> old(std::max<size_t>(32, table_.size() * 2));
    old.swap(table_);
    count_ = 0;
    for (const uint64_t id : old)
      if (id != 0) add(id);
  }
  std::vector<uint64_t> table_;  // a power of two; 0 is nothing
  size_t count_ = 0;
};

class Tape {
 public:
  explicit Tape(const GradientTapeOptions& options);
  ~Tape();
  Tape(const Tape&) = delete;

  /// Some tape of this thread records.
  static bool any();
  /// On every tape of this thread that records and knows one of the leaves. Under Context::mutex.
  static void note(const std::shared_ptr<Function>& f, std::span<const Ref> leaves, std::span<const Ref> outputs);
  /// The same for a function that is made only where some tape wants it.
  static void note(const std::function<std::shared_ptr<Function>()>& f, std::span<const Ref> leaves,
                   std::span<const Ref> outputs);
  using Own = std::function<EagerTensors(const EagerTensors& gradients)>;
  static void note(const Own& own, std::span<const Ref> leaves, std::span<const Ref> outputs);

  /// While it lives, no tape of this thread records.
  class Silence {
   public:
    Silence();
    ~Silence();
    Silence(const Silence&) = delete;
  };

  void watch(const Ref& t);
  void pause() { ++paused_; }
  void go_on() { --paused_; }
  void reset();
  std::vector<Ref> gradient(std::span<const Ref> targets, std::span<const Ref> sources, std::span<const Ref> seeds,
                            UnconnectedGradients unconnected, const char* what, bool last);
  bool persistent() const { return options_.persistent; }
  /// Throws Error(kUsage) where it has answered and is not persistent.
  void expect_open(const char* what) const;
  Variables watched() const;

 private:
  struct Call {
    std::shared_ptr<Function> function;  // or:
    std::shared_ptr<const Own> own;
    std::vector<uint64_t> in, out;     // ids; 0: no floating value
    std::vector<Ref> leaves, outputs;  // null: not read by backward
    std::vector<TensorType> types;     // of the outputs, of an own call
  };
  bool records() const { return paused_ == 0 && !closed_; }
  bool knows(std::span<const Ref> leaves);
  void add(Call call, std::span<const Ref> leaves, std::span<const Ref> outputs);

  GradientTapeOptions options_;
  int paused_ = 0;
  bool closed_ = false;
  Ids watched_;
  std::vector<std::weak_ptr<nn::WeightState>> variables_;
  std::vector<Call> calls_;
};

}  // namespace millpond::eager
