// ModelImpl: what a Model handle points to.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "millpond/model.h"
#include "nn/network.h"
#include "train/programs.h"
#include "train/trace.h"
#include "train/use.h"

namespace millpond::train {

struct Data;
class Stream;

struct ModelImpl {
  explicit ModelImpl(std::shared_ptr<nn::Network> net);
  ModelImpl(std::vector<Layer> layers, std::string name);  // a Sequential, perhaps without an input yet

  std::string name;
  std::vector<Layer> pending;            // of a Sequential: all its layers
  std::shared_ptr<nn::Network> network;  // null until the shape of a sample is known
  std::optional<Compiled> compiled;      // as resolved for the network's outputs
  std::optional<CompileOptions> options;
  runtime::Variable counter;         // counts training steps, for dropout
  Uses uses;                         // who uses the model now, and the programs it has made
  std::mutex making;                 // of programs, and of what they need: see use.h
  std::atomic<bool> called = false;  // on values, so that the weights have their places
  std::atomic<bool> stop = false;    // set by stop_training, from any thread
  bool interrupted = false;          // the last fit, by Ctrl-C
  const Data* training = nullptr;    // borrowed while fit runs: its arrays
  const Data* validation = nullptr;

  /// Throws Error(kUsage) when nothing says what a sample looks like.
  const nn::Network& built() const;
  /// What a Sequential that waits for data learns from the first; any thread may be the first.
  void build_from(const Shape& sample, DType dtype);
  /// The network, or null while nothing says what a sample looks like; any thread may ask.
  std::shared_ptr<nn::Network> network_now();
  /// Sets `compiled` from `options` once the outputs are known.
  void resolve_compile();
  const Compiled& needs_compile(const char* what) const;
  std::vector<nn::Weight> weights() const { return nn::weights_of(built()); }

  /// Gives weights, and for training slots, their places. Under `making`.
  void place_state(Kind kind);
  /// Gives the weights their places; any thread may be the first.
  std::vector<nn::Weight> placed_weights();
};

/// A user's arrays, checked against the model, as lanes to stage from.
struct Data {
  Arrays x, y;
  int64_t samples = 0;
  SampleShapes shapes;  // as programs take them: what the model leaves open is the data's
};
/// Throws Error(kShape) naming input, both shapes and sizes; Error(kValue) for no samples at all. Builds a Sequential
/// that waits for data.
Data check_data(ModelImpl& model, const Arrays& x, const Arrays& y, bool with_labels, const char* what);
Data rows_of(const Data& data, int64_t from, int64_t to);

/// Points the program's lanes at the data.
void connect(Ready& ready, const Data& data, bool check_inputs);
/// Fills the program's inputs, or throws Error(kValue) naming array, row, value and limit.
void stage_batch(Team& team, Ready& ready, const Data& data, const Rows& rows);

/// The Error(kValue) for a row that staging refused.
[[noreturn]] void refuse(const Ready& ready, const Data& data, const Rows& rows, Refusal bad);

/// Running means of the scalars of a program, and what its counting metrics count: from its making on they begin anew,
/// and when it goes they have what they had before, so that a callback of one run may begin another. Steps whose
/// scalars it is to have are run by it.
class Means {
 public:
  explicit Means(const Ready& like);
  ~Means();
  Means(const Means&) = delete;
  Means& operator=(const Means&) = delete;
  void reset();
  /// Begins one step.
  void run(Ready& r, Team& team) {
    samples_ += double(r.key.batch);
    r.program.run(team, sums_.data());
  }
  /// Waits for the steps that were begun, and writes the means to entries[0..size).
  void read(std::span<Logs::Entry> entries);
  size_t size() const { return size_; }

 private:
  struct Mean {
    size_t scalar;
    double per_sample;
    bool counted;  // the sum behind is what to divide by
  };
  struct Counted {
    size_t scalar;
    std::shared_ptr<const nn::CountingMetric> metric;
    std::vector<runtime::Variable*> variables;
    std::vector<Tensor> counts;     // as the host sees them
    std::vector<std::byte> before;  // of all of them, one after the other
  };
  const backend::Backend& backend_;
  size_t size_;
  double samples_ = 0;
  std::vector<Mean> means_;
  std::vector<double> sums_;  // of means_, one or two for each
  std::vector<Counted> counted_;
};

/// What `threads` of a user's options means. Throws Error(kUsage) for a number that no machine serves.
int threads_or_all(int threads);

/// Evaluates with batches of `batch`, calling nobody. Values in the order of the program's scalars.
struct EvaluateJob {
  int64_t batch = 32;
  int64_t steps = 0;
  int threads = 1;
  bool check_inputs = true;
  std::span<const CallbackRef> callbacks = {};
  int64_t* taken = nullptr;  // where the number of steps is told, if anybody asks
};
Results evaluate(const Use& use, Team& team, const Data& data, const EvaluateJob& job);
Results evaluate(const Use& use, Team& team, Stream& stream, const EvaluateJob& job);

}  // namespace millpond::train
