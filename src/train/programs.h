// Programs: what a model runs, one for each purpose and batch size, all in one arena as large as the largest of them.
// The cache is bounded: the program used longest ago goes first. Growing the arena moves every program; nothing in it
// outlives a step, so nothing is copied.
// Programs belong to one run at a time, and only that run's thread touches them; use.h says how a run comes by them.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "backend/stage.h"
#include "runtime/program.h"
#include "train/trace.h"

namespace millpond::train {

struct ProgramKey {
  Kind kind = Kind::kTrain;
  int64_t batch = 0;
  int threads = 1;
  std::vector<Shape> labels;  // of one sample of each y
  bool operator==(const ProgramKey&) const = default;
};

using backend::Check;
using backend::Lane;
using backend::Refusal;
using backend::Rows;

/// A program and where its numbers come and go, on the host's side. Addresses are good until the arena moves.
struct Ready {
  Ready(ProgramKey k, Traced t, const runtime::Options& options);
  ProgramKey key;
  std::vector<Feed> feeds;
  std::vector<Scalar> scalars;
  std::vector<std::string> outputs;
  runtime::Program program;
  std::vector<Lane> lanes;                    // to: bound here; from: by whoever brings data
  std::vector<const std::byte*> predictions;  // of outputs; good after program.wait()
  uint64_t used = 0;                          // when, in calls of get

  void bind(std::byte* arena);
};

class Programs {
 public:
  static constexpr size_t kMost = 8;

  explicit Programs(std::string account) : account_(std::move(account)) {}
  /// The program, bound. `make` traces it if it is not there; `allow` is told the arena that is wanted before it is
  /// taken and throws to refuse. A reference is good until kMost other programs have been asked for.
  Ready& get(const ProgramKey& key, const std::function<Traced(const passes::Options&)>& make,
             const std::function<void(const Ready&, Bytes more)>& allow);
  void clear();
  /// Returns when the steps that this thread has begun have ended.
  void wait() const;
  /// Where the programs' metrics count.
  MetricCounts& counts() { return counts_; }
  const MetricCounts& counts() const { return counts_; }
  const backend::Memory& arena() const { return arena_; }
  /// The arena's size; any thread may ask.
  Bytes arena_bytes() const { return Bytes{arena_bytes_.load(std::memory_order_relaxed)}; }
  std::vector<const Ready*> all() const;

  /// How often a program was asked for: as long as it is the same, every Ready& is where it was.
  uint64_t uses() const { return clock_; }

 private:
  std::string account_;
  MetricCounts counts_;  // before the programs, which point to it
  std::vector<std::unique_ptr<Ready>> ready_;
  backend::Memory arena_;
  std::atomic<int64_t> arena_bytes_{0};
  uint64_t clock_ = 0;
};

}  // namespace millpond::train
