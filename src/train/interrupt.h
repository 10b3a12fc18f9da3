// Interrupt: while one lives, Ctrl-C sets a flag instead of ending the process; a second Ctrl-C ends it as ever. There
// may be several at once, of fits in several threads: the first installs the handler, all of them see the flag, and the
// last to go puts back the handler that was there before. A program that ignores Ctrl-C (nohup) goes on ignoring it.
// The flag stays set when the trainings have ended, so that the next one of a loop does not begin as if nothing had
// been.
#pragma once
#include <atomic>

namespace millpond::train {

class Interrupt {
 public:
  /// Throws Error(kInterrupted) when the flag is set already, unless a fit of this thread is running, which ends too.
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool asked() const { return asked_.load(std::memory_order_relaxed); }

  /// What Ctrl-C does; may be called by any thread and by a signal handler.
  static void ask() { asked_.store(true, std::memory_order_relaxed); }
  static void clear() { asked_.store(false, std::memory_order_relaxed); }

 private:
  static std::atomic<bool> asked_;
};

}  // namespace millpond::train
