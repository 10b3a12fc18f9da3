#include "watch/witness.h"

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace millpond::watch {

Witness::Witness(const sigset_t& signals) : signals_(signals) { begin(); }
Witness::Witness(Witness&& o) noexcept : signals_(o.signals_), pid_(std::exchange(o.pid_, -1)) {}
Witness& Witness::operator=(Witness&& o) noexcept {
  std::swap(pid_, o.pid_);
  signals_ = o.signals_;
  return *this;
}
Witness::~Witness() { end(); }

void Witness::begin() {
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals_, &before);  // before it is there, so that none ends it
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "millpond group");
    // It may outlive nobody's wish to read to the end of our output.
    syscall(SYS_close_range, 0u, ~0u, 0u);
    while (getppid() == parent) pause();
    _exit(0);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void Witness::end() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool Witness::saw(int signal) {
  if (pid_ <= 0) return false;
  usleep(2000);  // whoever sends to a group comes to its members one after another
  uint64_t pending = 0;
  if (FILE* file = std::fopen(format("/proc/{}/status", pid_).c_str(), "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file))
      if (std::strncmp(line, "ShdPnd:", 7) == 0) pending = std::strtoull(line + 7, nullptr, 16);
    std::fclose(file);
  }
  if (!(pending >> (signal - 1) & 1)) return false;
  // What is pending stays so: another one stands there from now on.
  end();
  begin();
  return true;
}

}  // namespace millpond::watch
