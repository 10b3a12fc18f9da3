// Starts the collector of a process that watches itself, as nobody's child: it must not come out of the program's own wait(), nor raise its SIGCHLD.
//
//   program --clone without a signal, waits here--> middle, which shares our memory --posix_spawn--> collector, then ends
//
// The middle process is seen by no plain wait() (it has no exit signal), and we take it away at once; the collector's parent is whoever adopts orphans.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/shared.h"
#include "probe/system.h"
#include "probe/thread.h"

namespace millpond::probe {
namespace {

struct Task {
  const char* program;
  char* const* arguments;
  char* const* environment;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  pid_t pid = 0;
  int error = 0;
};

int start(void* task_) {
  auto& task = *static_cast<Task*>(task_);
  task.error = posix_spawn(&task.pid, task.program, &task.files, &task.how, task.arguments, task.environment);
  syscall(SYS_exit, 0);
  return 0;
}

int spawn(Task& task, int socket) {
  constexpr size_t kStack = 256 << 10;
  char* stack = static_cast<char*>(sys::map_private(kStack));
  if (!stack) return -ENOMEM;
  posix_spawn_file_actions_init(&task.files);
  posix_spawn_file_actions_adddup2(&task.files, socket, 0);
  posix_spawn_file_actions_addopen(&task.files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&task.files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&task.files, 3);  // a pipe of the program's would stay open as long as we do
  posix_spawnattr_init(&task.how);
  sigset_t none, all, before;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&task.how, &none);
  posix_spawnattr_setsigdefault(&task.how, &all);
  posix_spawnattr_setflags(&task.how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                          POSIX_SPAWN_SETSID);  // a Ctrl-C is for the program alone
  pthread_sigmask(SIG_SETMASK, &all,
                  &before);  // a handler of the program's must not run in the process that shares its memory
  const int middle = clone(start, stack + kStack, CLONE_VM | CLONE_VFORK, &task);
  const int error = errno;
  if (middle > 0)
    while (waitpid(middle, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  posix_spawn_file_actions_destroy(&task.files);
  posix_spawnattr_destroy(&task.how);
  sys::unmap(stack, kStack);
  if (middle <= 0) return -error;
  return task.error ? -task.error : task.pid;
}

}  // namespace
}  // namespace millpond::probe

extern "C" __attribute__((visibility("default"))) int millpond_probe_spawn(const char* program, char* const* arguments,
                                                                           char* const* environment, int socket) {
  millpond::probe::Quiet quiet;
  millpond::probe::Task task{program, arguments, environment, {}, {}};
  return millpond::probe::spawn(task, socket);
}
