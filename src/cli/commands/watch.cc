// millpond watch -- PROGRAM ...: runs a program and says why its memory grows. Ends as the program did, with its exit
// code or by its signal.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/format.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "report/source.h"

namespace millpond::cli {
namespace {

constexpr int kLines = 40;

// As the program ended, so that whoever waits for us sees what they would have seen of it: not an exit with 137, but an
// end by signal 9. Returns the exit code where that is not to be: the first process of a container is not ended by its
// own signals.
int end_as(const watch::Ending& ending) {
  if (!ending.signal) return ending.exit_code;
  std::fflush(nullptr);
  prctl(PR_SET_DUMPABLE, 0);  // if there is a core it is the program's
  ::signal(*ending.signal, SIG_DFL);
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  kill(getpid(), *ending.signal);
  return ending.exit_code;
}

int run_watch(const WatchOptions& o, bool lines, const std::vector<std::string>& command) {
  const watch::Result result = watch_program(o, command);
  const Judged j = judge_result(result);
  Json object = report::doctor_json(j.evidence, j.verdict, j.meta);
  object["file"] = result.path;
  const report::SourceLine source = report::stored_source(j.sources);
  if (lines) object["lines"] = report::lines_json(j.evidence, source, kLines);
  // With --json - the object alone is on standard output; the program's own output came before it.
  if (!o.json.on_stdout()) {
    std::fputs("\n", stderr);
    std::fputs(report::doctor_text(j.evidence, j.verdict, j.meta, text_style(STDERR_FILENO, o.verbose)).c_str(),
               stderr);
    if (lines)
      std::fprintf(stderr, "\n%s\n", report::lines_text(j.evidence, source, text_style(STDERR_FILENO), kLines).c_str());
    std::fputs(file_line(result.path, text_style(STDERR_FILENO, o.verbose), o.live).c_str(), stderr);
  }
  o.json.write(object);
  return end_as(result.ending);
}

}  // namespace

static void add_watch(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("watch", "Run a program and say why its memory grows");
  auto o = std::make_shared<WatchOptions>();
  add_watch_options(*sub, *o);
  sub->add_option("--pid", o->pid,
                  "A process that runs already: the probe comes into it, and leaves it when the watching ends; from "
                  "outside only where that cannot be");
  sub->add_flag("--inside", o->inside, "For a process that watches itself, over a socket that is standard input")
      ->group("");
  auto lines = std::make_shared<bool>(false);
  sub->add_flag("--live", o->live,
                "Serve the page while the program runs, at an address of this machine that is told on standard error");
  sub->add_flag("--lines", *lines,
                "Also the source, line by line: allocated, freed, still held, held more each period");
  sub->prefix_command();
  sub->footer(R"(
Examples:
  millpond watch -- python train.py --epochs 20
  millpond watch -o before.pond --limit 8GiB -- python train.py
  millpond watch --json result.json -- torchrun train.py
  millpond watch --lines -- python train.py
  millpond watch -v -- python train.py             the evidence too, and what was measured
  millpond watch --live -- python train.py         the page, while it runs
  millpond watch --pid 4711 --for 600

With --pid the program runs on unharmed when the time of --for is over, or after Ctrl-C. The probe comes in by sys.remote_exec (Python 3.14 and newer) or by gdb.
The program is not changed and its output passes through untouched. The exit code is the program's own.)");
  sub->callback([sub, o, lines, &chosen] {
    chosen.run = [sub, o, lines, &chosen] {
      return o->inside && o->pid ? watch_from_inside(*o) : run_watch(*o, *lines, program_of(*sub, chosen, o->pid != 0));
    };
  });
}
constinit const Command commands::watch{50, add_watch};

}  // namespace millpond::cli
