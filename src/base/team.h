// Team: the threads that run a program together. There is one for each size in a process; kernels and data share it.
// Threads are made with the team, spin for about 50 us when out of work, then park in the operating system.
// Memory: 64 KiB of stack for each thread, taken at once: on a busy machine a thread may get its first work late, and pages that
// become resident only then would look like growth.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace millpond {

/// Processors this process may really use: its affinity, cut by the cgroup's quota, at least 1.
int usable_threads();

/// Makes 64 KiB of the caller's stack resident, more than any kernel needs.
void touch_stack();

class Team {
 public:
  /// Returns when every thread has started and touched its stack.
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  /// Runs f(member) on the caller as member 0 and invites the others. Returns when the caller's own call has ended and
  /// every member that had started has left: a member that is late (its core is busy elsewhere) may never take part, so
  /// `f` must be able to finish without it.
  template <class F>
  void run(F&& f) {
    if (size_ == 1) return f(0);
    begin([](void* p, int member) { (*static_cast<std::remove_reference_t<F>*>(p))(member); }, (void*)&f);
    f(0);
    end();
  }

 private:
  using Function = void (*)(void*, int);
  void begin(Function function, void* argument);
  void end();
  void serve(int member);

  int size_;
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

/// Waits a moment inside a spin loop; gives the core away when it has spun for long.
class Spin {
 public:
  void wait();

 private:
  uint32_t count_ = 0;
};

}  // namespace millpond
