#include "cli/live.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "base/format.h"
#include "cli/command.h"
#include "millpond/error.h"
#include "serve/live.h"

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

namespace {
/// From now on a process of its own: the command that started it is not waited for, nor held up by streams of its own
/// that we would keep open.
void go_alone() {
  setsid();
  [[maybe_unused]] const int moved = chdir("/");
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDOUT_FILENO), dup2(nothing, STDERR_FILENO);
  [[maybe_unused]] const ssize_t said = send(STDIN_FILENO, "s", 1, MSG_NOSIGNAL);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
}
}  // namespace

void add_live(CLI::App& app, Invocation& chosen) {
  CLI::App* sub =
      app.add_subcommand("live", "Serve the page of a run file that is being written, until standard input ends");
  sub->group("");  // part of --live, not a command of its own
  auto file = std::make_shared<std::string>();
  sub->add_option("FILE", *file, "The run file")->required();
  sub->callback([file, &chosen] {
    chosen.run = [file] {
      signal(SIGINT, SIG_IGN);  // the run ends by itself, and we with it
      serve::LivePage page(*file);
      std::fprintf(stderr, "millpond: live at %s\n", page.address().c_str());
      char ignored[64];
      for (;;) {
        const ssize_t n = read(STDIN_FILENO, ignored, sizeof ignored);
        if (n == 0 || (n < 0 && errno != EINTR)) break;
      }
      if (page.end()) {
        std::fprintf(stderr, "millpond: the page stays at %s until it is closed, for an hour at most\n",
                     page.address().c_str());
        go_alone();
        page.stay();
      } else {
        page.finish();
      }
      return int(kOk);
    };
  });
}

}  // namespace millpond::cli
