// Team: the threads that run a program together. Threads are made with the team, spin for about 50 us when out of work,
// then park in the operating system.
//
// Who owns what: a team belongs to one thread at a time, the one whose run (fit, evaluate, predict) has leased it; only
// that thread calls run(). TeamLease hands teams out and takes them back, and any thread may make one at any time. A
// lease never waits: when other runs have the processors, its team has no helpers and the caller does all the work. A
// step gives the same bits with and without them, because a team's size, not who comes, decides how work is cut.
//
// Memory: 64 KiB of stack for each thread, taken at once: on a busy machine a thread may get its first work late, and
// pages that become resident only then would look like growth.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace millpond {

/// Processors this process may really use: its affinity, cut by the cgroup's quota, at least 1.
int usable_threads();

/// Makes 64 KiB of the caller's stack resident, more than any kernel needs.
void touch_stack();

class Team {
 public:
  /// Returns when every thread has started and touched its stack. Throws Error(kMemory) when the system gives fewer.
  explicit Team(int size);
  /// A team of this size whose other members never come: run() does everything on the caller.
  struct WithoutHelpers {};
  Team(int size, WithoutHelpers) : size_(size > 1 ? size : 1) {}
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }
  bool helped() const { return helpers_ > 0; }

  /// Runs f(member) on the caller as member 0 and invites the others. Returns when the caller's own call has ended and
  /// every member that had started has left: a member that is late (its core is busy elsewhere) may never take part, so
  /// `f` must be able to finish without it.
  template <class F>
  void run(F&& f) {
    if (helpers_ == 0) return f(0);
    begin([](void* p, int member) { (*static_cast<std::remove_reference_t<F>*>(p))(member); }, (void*)&f);
    f(0);
    end();
  }

 private:
  using Function = void (*)(void*, int);
  void begin(Function function, void* argument);
  void end();
  void serve(int member);

  void dismiss();

  int size_;
  int helpers_ = 0;
  std::vector<std::thread> threads_;
  Function function_ = nullptr;
  void* argument_ = nullptr;
  // `gate_`: bit 0 open, then the number of members inside, in the upper half the round, so that "open?", "mine?" and
  // "enter" are one step: a member late from one round must not enter the next one twice.
  alignas(64) std::atomic<uint64_t> gate_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) std::atomic<uint32_t> parked_{0};
  std::atomic<int> started_{1};
  std::atomic<bool> stop_{false};
};

/// The team of one run, for as long as the lease lives. Leases of one thread nest (a callback of fit that predicts); an
/// inner one of the same size works with the outer one's team. Idle teams are kept for the next lease, as many as have
/// together no more helpers than the process has processors.
class TeamLease {
 public:
  /// `helpers` false: the run has nothing to share and leaves the processors to others.
  explicit TeamLease(int size, bool helpers = true);
  ~TeamLease();
  TeamLease(const TeamLease&) = delete;
  TeamLease& operator=(const TeamLease&) = delete;

  Team& operator*() const { return *team_; }
  /// Helpers were asked for, and other runs had the processors.
  bool refused() const { return wanted_ && !team_->helped(); }
  /// Asks again for helpers that were refused. Not while the team runs.
  void ask_again();

 private:
  void ask();

  int size_;
  bool wanted_;
  int processors_ = 1;       // that this lease counts for among those in use
  TeamLease* outer_;         // of the same thread
  std::optional<Team> own_;  // without helpers
  std::unique_ptr<Team> leased_;
  Team* team_ = nullptr;  // own_, leased_, or an outer lease's
};

/// Waits a moment inside a spin loop; gives the core away when it has spun for long.
class Spin {
 public:
  void wait();

 private:
  uint32_t count_ = 0;
};

}  // namespace millpond
