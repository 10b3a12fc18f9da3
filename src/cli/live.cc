#include "cli/live.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/format.h"
#include "millpond/error.h"

extern char** environ;

namespace millpond::cli {

Live::Live(const std::string& file) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(Code::kFile, format("--live: no line to the server can be made: {}", std::strerror(errno)))
        .hint("run without --live");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e)
    if (std::strncmp(*e, "LD_PRELOAD=", 11) != 0) environment.push_back(*e);  // nobody counts the server's allocations
  environment.push_back(nullptr);
  std::string words[] = {"millpond", "live", file};
  char* const argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  const int code = posix_spawn(&child_, "/proc/self/exe", &actions, nullptr, argv, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[0]);
  line_ = ends[1];
  if (code != 0) {
    close(line_);
    line_ = child_ = -1;
    throw Error(Code::kFile, format("--live: the server cannot be started: {}", std::strerror(code)))
        .hint("run without --live");
  }
}

void Live::finish() {
  if (line_ < 0) return;
  shutdown(line_, SHUT_WR);
  char stays = 0;
  ssize_t n = 0;
  do n = read(line_, &stays, 1);
  while (n < 0 && errno == EINTR);
  close(line_);
  line_ = -1;
  if (n != 1) waitpid(child_, nullptr, 0);
  child_ = -1;
}

}  // namespace millpond::cli
