// Patient: the watched program: how it is started, signalled and waited for.
//
// Its standard streams and its terminal are ours, untouched. What is added to its environment: LD_PRELOAD,
// MILLPOND_WATCH and friends, and our folder in front of PYTHONPATH.
#pragma once
#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "watch/witness.h"

namespace millpond::watch {

struct Start {
  std::vector<std::string> command;
  std::string folder;         // of shared memory
  std::string probe_library;  // empty: nothing is preloaded
  std::string agent_folder;   // that holds sitecustomize.py; empty: no agent
  bool probes = true, native = false, follow = true;
  std::vector<std::pair<std::string, std::string>> more;  // environment
};

struct Ending {
  int exit_code = 0;  // as a shell would say: 128 + signal after a signal
  std::optional<int> signal;
  Bytes peak;  // the most that was resident, as the system counted it; 0: not known
};

/// What can be said before the program is started: where it is, and what will not be seen of it.
struct Program {
  std::string path;
  std::string blind;     // a sentence when nothing can be loaded into it (static, setuid); empty otherwise
  bool hands_on = true;  // what it starts gets its environment, and the probe with it: uv is linked statically
};
/// Throws Error(kUsage) when there is no such program, or it may not be run.
Program find_program(const std::string& name);

class Patient {
 public:
  /// Throws Error(kUsage) when it cannot be started.
  static Patient start(const Start& start, const Program& program);
  /// A process that runs already; its end is seen, its exit code is not.
  static Patient attach(Pid pid);
  Patient(Patient&& o) noexcept;
  Patient& operator=(Patient&&) = delete;
  ~Patient();  // never ends the program; signals are ours again

  Pid pid() const { return pid_; }
  /// Waits at most so long; true when it has ended. Signals that came for us meanwhile are passed on, as the program
  /// would have got them.
  bool wait(double seconds, int also = -1);  // or until `also` can be read
  /// A signal came that asks us to end, and the program that was running before us is not to hear of it.
  bool told_to_leave() const { return told_to_leave_; }
  const Ending& ending() const { return ending_; }

 private:
  Patient() = default;
  Pid pid_;
  int pidfd_ = -1, signals_ = -1;
  Witness witness_;
  sigset_t before_{};  // signals that were blocked before us
  bool child_ = true, ended_ = false, told_to_leave_ = false;
  bool stopping_ = false;  // somebody asked the job to stop
  Ending ending_;
};

}  // namespace millpond::watch
