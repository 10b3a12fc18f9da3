// Use: one call on a model (fit, predict, compile, ...) from its beginning to its end, and the rule who owns what meanwhile.
//
//   weights, slots,    belong to the model. Any number of uses may read them at once; a use that changes them (fit,
//   counters           set_weights) has them for itself, and whoever comes meanwhile from another thread is refused.
//   a workspace        (arena and bound programs) belongs to one use at a time. predict and evaluate take one that is free;
//                      there are at most as many as the process has processors (at least two), and then a use waits.
//                      fit takes the first and drops the others, so that training takes what its plan says.
//   making programs,   (tracing, planning, the first placing of weights, the building of a model by its first data) is done
//                      by one thread at a time, under ModelImpl::making.
//   threads of a step  belong to the run that leased them: base/team.h.
//
// Uses of one thread nest: a callback of fit may predict, evaluate, set weights and fit again, in the workspace of the outer
// use. What would pull the ground from under a run (compile, add) is refused even there.
// Two models that share layers are one model for these rules, but nobody checks that.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "train/programs.h"

namespace millpond::train {

struct ModelImpl;
class Use;

/// What a model keeps for its uses.
class Uses {
 public:
  Uses();
  /// Every workspace; for the thread that has the model for itself, or when nobody uses it.
  std::vector<const Programs*> workspaces() const;
  /// The arenas of all of them; any thread may ask.
  Bytes arena_bytes() const;
  /// Drops every program. Nobody may be using one.
  void clear();

 private:
  friend class Use;
  struct Workspace {
    Programs programs{"arena"};
    bool taken = false;
  };
  mutable std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // at least one
  std::vector<const Use*> active_;
};

class Use {
 public:
  enum class How : uint8_t {
    kRead,    // reads weights
    kRun,     // reads weights and runs programs
    kChange,  // changes weights
    kTrain,   // changes weights and runs programs
    kRemake,  // changes what the model is: refused while any other use lives, of this thread too
  };
  /// `what` is the name of the call, for messages. Throws Error(kUsage) when another thread's use stands against it.
  Use(ModelImpl& model, const char* what, How how);
  ~Use();
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  ModelImpl& model() const { return model_; }
  Programs& programs() const { return workspace_->programs; }
  /// The program for a batch of such samples, everything it uses in memory; refuses with Error(kMemory) what does not
  /// fit. Allocates nothing where the program is there already.
  Ready& program(Kind kind, int64_t batch, int threads, const SampleShapes& samples) const;

 private:
  bool changes() const { return how_ == How::kChange || how_ == How::kTrain; }
  bool runs() const { return how_ == How::kRun || how_ == How::kTrain; }
  void refuse_against(const Use& other) const;
  const Use* check() const;
  void take_workspace(std::unique_lock<std::mutex>& lock);

  ModelImpl& model_;
  const char* what_;
  How how_;
  std::thread::id thread_ = std::this_thread::get_id();
  Uses::Workspace* workspace_ = nullptr;  // borrowed from the model
  bool took_ = false;                     // rather than an outer use of this thread
};

}  // namespace millpond::train
