#include "probe/apart.h"

#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <initializer_list>

#include "probe/shared.h"
#include "probe/system.h"

namespace millpond::probe::apart {
namespace {

constexpr uint64_t kLongestNs = 20'000'000'000;
constexpr uint64_t kShareOfFree = 100;  // one part of so many may go to page tables

void leave_the_program() {
  sigset_t all;
  sigfillset(&all);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8);
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    uint64_t mask;
  } standard{};
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    syscall(SYS_rt_sigaction, number, &standard, nullptr, 8);
  const rlimit none{0, 0};
  syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, nullptr);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  syscall(SYS_prctl, PR_SET_NAME, kWalkProcess, 0, 0, 0);
  // Behind the program, and not behind everything: with the lowest priority a walk of 0.08 s took 12 s on a machine
  // with five busy programs for each processor, and was told when the short program had ended. The kernel gives 20 -
  // nice.
  const long nice = 20 - syscall(SYS_getpriority, PRIO_PROCESS, 0);
  syscall(SYS_setpriority, PRIO_PROCESS, 0, nice + 5 < 19 ? nice + 5 : 19);
  constexpr int kBatch = 3, kPriority = 0;  // waking up takes no processor from a thread of the program
  if (syscall(SYS_sched_getscheduler, 0) == 0) syscall(SYS_sched_setscheduler, 0, kBatch, &kPriority);
  constexpr long kCloseRange = 436;
  syscall(kCloseRange, 0, ~0u, 0);
}

// The number behind `key` in a file of /proc that has one in a line; 0: not there.
uint64_t kib_of(const char* path, const char* key) {
  static char text[4096];  // a thread of the program may have a small stack; callers hold a lock
  const int fd = int(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return 0;
  const long size = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  text[size > 0 ? size : 0] = 0;
  const char* at = strstr(text, key);
  if (!at) return 0;
  uint64_t value = 0;
  for (at += strlen(key); *at == ' ' || *at == '\t'; ++at) {
  }
  for (; *at >= '0' && *at <= '9'; ++at) value = value * 10 + uint64_t(*at - '0');
  return value;
}

}  // namespace

bool Child::start(bool (*work)(void*), void* argument) {
  began_ns_ = sys::now_ns();
  const long made = syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, nullptr);
  if (made == 0) {
    leave_the_program();
    const bool done = work(argument);
    syscall(SYS_exit_group, done ? 0 : 1);
  }
  pid_ = made > 0 ? made : 0;
  return made > 0;
}

int Child::state() {
  if (pid_ <= 0) return 1;
  int status = 0;
  const long ended = syscall(SYS_wait4, pid_, &status, WNOHANG | __WALL, nullptr);
  if (ended == 0) {
    if (sys::now_ns() - began_ns_ > kLongestNs) syscall(SYS_kill, pid_, SIGKILL);
    return 0;
  }
  pid_ = 0;
  return status == 0 ? 1 : -1;
}

void Child::end() {
  if (pid_ <= 0) return;
  syscall(SYS_kill, pid_, SIGKILL);
  syscall(SYS_wait4, pid_, nullptr, __WALL, nullptr);
  pid_ = 0;
}

bool has_room() {
  const uint64_t tables = kib_of("/proc/self/status", "VmPTE:"), free = kib_of("/proc/meminfo", "MemAvailable:");
  return tables > 0 && free > 0 && tables <= free / kShareOfFree;
}

}  // namespace millpond::probe::apart
