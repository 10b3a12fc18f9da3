// Pool: the memory of one running pipeline: buffers that are used again, never more than its limit, each charged to the
// stage that has it.
//
//   block:  | header 128 bytes: who has it, room for shared_ptr's own record | values, aligned to 64 bytes |
//
// take() gives a shared_ptr whose record lies in the block itself, so a buffer in the steady state costs no allocation
// at all. Blocks come in classes (eight for each doubling of the size); a block that comes back waits in its class.
// What waits counts as held: when the limit would be passed, waiting blocks of other classes go back to the system
// first.
//
// Who may pass whom. A thread that works ahead (its Waiter says so) waits until others have given back enough. The
// thread that the consumer waits for never waits here: it gets its bytes, or, where everything that could go has gone,
// Error(kMemory) with what each stage holds. So nobody waits in a circle.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/segment.h"
#include "millpond/dataset.h"

namespace millpond::data {

/// One stage of a running pipeline: its account, its bound and what was measured. Counters may be read at any time.
class Stage {
 public:
  Stage(std::string its_name, std::string its_text)
      : name(std::move(its_name)), text(std::move(its_text)), holding("pipeline/" + name, Bytes{0}) {}

  void change(Bytes by) {
    holding.add(by);
    const int64_t now = holding.bytes().value;
    for (int64_t seen = peak.load(std::memory_order_relaxed);
         now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed);) {
    }
  }
  Bytes held() const { return holding.bytes(); }
  void ask(Stage& of) {
    if (!inner) inputs.push_back(&of);
  }
  void decide(std::string text_of_it) {
    const std::lock_guard lock(mutex);
    decision = std::move(text_of_it);
  }
  std::string decided() const {
    const std::lock_guard lock(mutex);
    return decision;
  }

  const std::string name, text;
  Holding holding;
  Bytes bound;                 // its own ceiling; 0: it holds no more than the element it works on
  std::vector<Stage*> inputs;  // those it asks
  bool inner = false;          // of pipelines inside flat_map, all of a kind in one line
  int depth = 0;               // in the tree, for the table
  std::string reads;           // of numbered elements: the source whose rows it reads
  bool keeps = false;          // what it has stays its own when it is also given out: a cache
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> out{0};  // elements given
  std::atomic<int64_t> ns{0};   // nanoseconds that asking it took, inputs included (by samples where a call is short)
  std::atomic<int64_t> work_ns{0};    // of threads of its own, all of them together (not sampled)
  std::atomic<int64_t> waited_ns{0};  // by who asked this stage's queue and found it empty
  std::atomic<int64_t> waits{0}, left_out{0};
  std::atomic<int> threads{0};

 private:
  mutable std::mutex mutex;
  std::string decision;
};

/// A thread that works ahead, and whether somebody is waiting for just what it makes.
struct Waiter {
  virtual bool urgent() const = 0;
  virtual bool stopping() const = 0;

 protected:
  ~Waiter() = default;
};
/// Of this thread; null: the consumer's own thread.
inline thread_local const Waiter* this_waiter = nullptr;

/// Thrown out of a wait when the pipeline is being taken down; never seen by users.
struct Stopped {};

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  static std::shared_ptr<Pool> make(Bytes limit);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  Stage& add_stage(std::string name, std::string text);
  /// All so far, from the last of the chain to its sources. Stages stay where they are as long as the pool; more may be
  /// added meanwhile.
  std::vector<const Stage*> stages() const;

  /// Not zeroed. Aligned to 64 bytes.
  std::shared_ptr<std::byte> take(Bytes size, Stage& stage);
  Tensor tensor(DType dtype, const Shape& shape, Stage& stage);

  /// Memory that is not the pool's own but belongs to the pipeline (bookkeeping of a buffer): counted, not given.
  void count(Bytes by, Stage& stage);

  Bytes limit() const { return limit_; }
  Bytes held() const { return Bytes{total_.load(std::memory_order_relaxed)}; }
  Bytes peak() const { return Bytes{peak_.load(std::memory_order_relaxed)}; }
  /// Whether `more` would fit now, waiting blocks let go of.
  bool has_room(Bytes more) const { return in_use_.load(std::memory_order_relaxed) + more.value <= limit_.value; }
  /// Somebody began to wait, or a pipeline is being taken down: those who wait for bytes look again.
  void poke();

  /// What a block of so many bytes costs in all.
  static Bytes cost(Bytes size);

  /// Calls f(account, begin, size) for each large block, which has an address range of its own.
  void each_range(const std::function<void(const std::string&, const void*, Bytes)>& f) const;

 private:
  explicit Pool(Bytes limit);
  struct Block;
  struct Deleter;
  template <class T>
  struct Allocator;
  friend Block* block_of(const std::shared_ptr<void>&);
  friend void hand_over(Element& e, Stage& to);
  friend void keep_apart(Element& e, Pool& pool, Stage& stage);

  void give(Block* b);
  bool trim(Bytes wanted);  // under the lock
  [[noreturn]] void refuse(Bytes size, const Stage& stage);
  static Block* create(int index, Bytes whole);
  static void destroy(Block* b);

  static constexpr int kClasses = 8 * 56;
  const Bytes limit_;
  mutable std::mutex lock_;
  std::condition_variable given_;
  int waiting_ = 0;
  std::array<Block*, kClasses> free_{};
  Block* large_ = nullptr;  // list of all large blocks, live or waiting
  std::atomic<int64_t> total_{0}, in_use_{0}, peak_{0};
  std::deque<Stage> stages_;
  Holding spare_;  // pipeline/spare: blocks that wait
};

/// Charges the buffers of an element to another stage: it lies in that one's queue now.
void hand_over(Element& e, Stage& to);

/// For one who keeps elements: a tensor that is a small part of a large buffer (a row of a batch) would keep all of it;
/// it gets a buffer of its own.
void keep_apart(Element& e, Pool& pool, Stage& stage);

/// What keeping an element costs beside its values: its tensors and their bookkeeping.
Bytes overhead(const Element& e);

/// Large blocks of every pipeline of this process, for the ledger.
void each_pipeline_range(const std::function<void(const std::string&, const void*, Bytes)>& f);

}  // namespace millpond::data
