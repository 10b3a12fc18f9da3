// millpond live: serves the page of a run file that is being written. Part of --live (cli/live.h), hidden from people.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "serve/live.h"

namespace millpond::cli {
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

static void add_live(CLI::App& app, Invocation& chosen) {
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
constinit const Command commands::live{110, add_live};

}  // namespace millpond::cli
