// Witness: tells a signal for the whole process group from one for us alone.
//
// What somebody sends to the group (kill -TERM -PGID, a supervisor that ends every process of a job) the program has
// already, and would get twice if we passed it on; what comes for us alone would have been the program's. A signal does
// not say which it was. So a process that does nothing stands beside us in the group, with these signals blocked: what
// is pending there too was sent to all. Costs: a process of some hundred KiB that never runs.
#pragma once
#include <signal.h>
#include <sys/types.h>

namespace millpond::watch {

class Witness {
 public:
  Witness() = default;
  explicit Witness(const sigset_t& signals);
  Witness(Witness&& o) noexcept;
  Witness& operator=(Witness&& o) noexcept;
  ~Witness();

  /// Whether the group got this signal, since the last time it was asked about this one.
  bool saw(int signal);

 private:
  void begin();
  void end();
  sigset_t signals_{};
  pid_t pid_ = -1;
};

}  // namespace millpond::watch
