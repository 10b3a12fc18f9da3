// Programs: what a model runs, one for each purpose, batch size and shape of the samples, all in one arena as large as
// the largest of them. What is kept is bounded, in number and in bytes (calls, plans, generated code and constants, which
// belong to each program by itself): the program used longest ago goes first. Growing the arena moves every program;
// nothing in it outlives a step, so nothing is copied.
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
  SampleShapes samples;
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
  Bytes own;                                  // what its calls and plan take, about
  Bytes constants;                            // and its constants, exactly

  /// Is it the program of its kind for such a batch? Asked before every step whose batches differ: allocates nothing.
  bool is_for(int64_t batch, const SampleShapes& samples) const {
    return key.batch == batch && key.samples.x == samples.x &&
           (key.kind == Kind::kPredict || key.samples.y == samples.y);
  }
  void bind(std::byte* arena);
};

class Programs {
 public:
  /// A model that meets batches of many shapes has a program for each, up to so many and so many bytes. kLeast stay
  /// whatever their bytes, so that those of one fit (training, validating, last batches) never drop each other.
  static constexpr size_t kMost = 64, kLeast = 8;
  static constexpr Bytes kMostBytes{64 << 20};

  explicit Programs(std::string account) : account_(std::move(account)) {}
  /// The program, bound, or null where there is none. Allocates nothing.
  Ready* find(Kind kind, int64_t batch, int threads, const SampleShapes& samples);
  /// The program, bound. `make` traces it if it is not there; `allow` is told the arena that is wanted before it is
  /// taken and throws to refuse. A reference is good until kLeast other programs have been asked for.
  Ready& get(Kind kind, int64_t batch, int threads, const SampleShapes& samples,
             const std::function<Traced(const passes::Options&)>& make,
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
  /// What all programs take beside the arena, about.
  Bytes own_bytes() const;
  /// How many programs went because others were wanted.
  int64_t dropped() const { return dropped_; }

  /// How often a program was asked for: as long as it is the same, every Ready& is where it was.
  uint64_t uses() const { return clock_; }

 private:
  std::string account_;
  MetricCounts counts_;  // before the programs, which point to it
  std::vector<std::unique_ptr<Ready>> ready_;
  backend::Memory arena_;
  std::atomic<int64_t> arena_bytes_{0};
  uint64_t clock_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace millpond::train
