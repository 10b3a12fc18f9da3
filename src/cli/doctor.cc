#include "cli/doctor.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/format.h"
#include "cli/live.h"
#include "cli/nearest.h"
#include "cli/news.h"
#include "cli/pages.h"
#include "cli/self.h"
#include "report/text.h"
#include "verdict/numbers.h"
#include "watch/way_in.h"

namespace millpond::cli {

void add_watch_options(CLI::App& sub, WatchOptions& o) {
  sub.add_option("-o,--out", o.out, "The run file; without it run.pond, run-2.pond, ... whatever is free");
  sub.add_flag("--force", o.force, "Replace the run file if it exists");
  sub.add_option("--limit", o.limit,
                 "Memory that must not be exceeded, for the forecast (8GiB); without it the cgroup's or the machine's");
  sub.add_flag(
      "--no-probes", o.no_probes,
      "Never call gc.collect and malloc_trim in the program; retention and leaks are harder to tell apart then");
  sub.add_flag("--native", o.native, "Native frames below the Python ones too");
  sub.add_flag("--no-follow-fork", o.no_follow, "Leave forked children alone");
  sub.add_flag("--no-source", o.no_source, "Store no line of the program's source in the run file");
  sub.add_flag("--no-arguments", o.no_arguments,
               "Store no arguments of the program and its children, their names alone");
  sub.add_flag("--quiet", o.quiet, "No news while it runs, neither as a line nor in the window's title");
  sub.add_flag("-v,--verbose", o.verbose,
               "Also the evidence, rates, smaller findings, advice, what was measured and how");
  sub.add_option("--for", o.seconds, "Stop watching after so many seconds and leave the program running");
  sub.add_option("--json", o.json.where,
                 "Write all that was found as one JSON object to FILE, or - for standard output");
}

std::vector<std::string> program_of(const CLI::App& sub, const Invocation& chosen, bool allowed) {
  std::vector<std::string> command = sub.remaining();
  // What the parser did not know and left for the program to run: a word that begins with a dash is an option of ours
  // that was mistyped.
  if (!command.empty() && command[0].size() > 1 && command[0][0] == '-') throw unknown_option(sub, command[0]);
  command.insert(command.end(), chosen.program.begin(), chosen.program.end());
  if (command.empty() && !allowed)
    throw Error(Code::kUsage, format("{}: no program is named", sub.get_name()))
        .hint(format("millpond {} -- python train.py", sub.get_name()));
  return command;
}

report::TextStyle text_style(int fd, bool verbose) {
  report::TextStyle s;
  s.verbose = verbose;
  const char* plain = std::getenv("NO_COLOR");
  s.color = isatty(fd) && !(plain && *plain);
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) s.width = std::clamp<int>(size.ws_col - 1, 60, 140);
  return s;
}

watch::Start start_of(const std::vector<std::string>& command) {
  watch::Start start;
  start.command = command;
  start.probe_library = installed("libmillpond_probe.so");
  start.agent_folder = installed("inject");
  for (const std::string& needed : {start.probe_library, start.agent_folder})
    if (access(needed.c_str(), R_OK) != 0)
      throw Error(Code::kFile, format("{} is missing", needed)).hint("build or install Millpond again");
  return start;
}

namespace {
watch::Options options_of(const WatchOptions& o, const std::vector<std::string>& command) {
  watch::Options w;
  w.start = start_of(command);
  w.start.probes = !o.no_probes, w.start.native = o.native, w.start.follow = !o.no_follow;
  if (o.pid) w.attach = Pid{o.pid};
  w.out = o.out, w.force = o.force;
  w.source = !o.no_source, w.arguments = !o.no_arguments;
  if (!o.limit.empty()) w.limit = parse_bytes(o.limit);
  if (o.seconds > 0) w.stop_after = o.seconds;
  return w;
}
}  // namespace

int watch_from_inside(const WatchOptions& o) {
  const auto say = [](const Json& object) {
    const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    for (size_t at = 0; at < line.size();) {
      const ssize_t n = send(STDIN_FILENO, line.data() + at, line.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += size_t(n);
    }
  };
  try {
    watch::Options w = options_of(o, {});
    std::string file;
    w.opened = [&](const std::string& path) { file = path; };
    w.enter = [&](const std::string& folder) {
      say({{"folder", folder}, {"file", file}});
      return std::optional<std::string>();
    };
    w.until = STDIN_FILENO;
    const watch::Result result = watch::watch(w);
    say({{"file", result.path}, {"remarks", result.remarks}});
    return kOk;
  } catch (const std::exception& e) {
    say({{"error", e.what()}});
    return kUsageError;
  }
}

watch::Result watch_program(const WatchOptions& o, const std::vector<std::string>& command) {
  watch::Options w = options_of(o, command);
  std::optional<watch::WayIn> way;
  if (o.pid) {
    way.emplace(Pid{o.pid}, watch::Visit{w.start.probe_library, w.start.agent_folder, w.start.probes, w.start.native,
                                         w.start.follow});
    w.enter = [&](const std::string& folder) { return way->enter(folder); };
    w.leave = [&] { return way->leave(); };
  }
  News news(o.quiet ? -1 : STDERR_FILENO);
  w.tell = [&](const watch::Progress& p) {
    std::string text = format("millpond: {}  {}", verdict::duration(std::floor(p.seconds)), p.rss);
    if (!p.mark.empty()) text += "  " + p.mark;
    if (p.bytes_per_period && std::fabs(*p.bytes_per_period) > 10000)
      text +=
          format("  {}{} each", *p.bytes_per_period > 0 ? "+" : "-", Bytes{int64_t(std::fabs(*p.bytes_per_period))});
    news.tell(p.program, text);
  };
  std::optional<Live> page;
  if (o.live) w.opened = [&](const std::string& path) { page.emplace(path); };
  const watch::Result result = watch::watch(w);
  if (page) page->finish();
  return result;
}

std::string file_line(const std::string& path, const report::TextStyle& style, bool live) {
  // Told as it can be typed where that fits; a long name is told once, and the command without it.
  const auto line = [&](const std::string& name, const std::string& again) {
    return format("  {:<9} {} (`millpond report {}{}`{}{})", "file", name, style.verbose ? "" : "-v ", again,
                  style.verbose ? "" : " says more", live ? ", -o page.html keeps the page" : "");
  };
  const std::string name = report::short_path(path, 40);
  for (const std::string& again : {name, std::string("FILE")})
    if (const std::string text = line(name, again); report::columns(text) <= size_t(style.width)) return text + "\n";
  return format("  {:<9} {}\n", "file", report::short_path(path, size_t(std::max(20, style.width - 12))));
}

Judged judge_result(const watch::Result& result) {
  if (result.incomplete.empty()) return judge_file(result.path);
  std::fprintf(stderr, "\nmillpond: %s could not be written any further, and ends before the program did: %s\n",
               result.path.c_str(), result.incomplete.c_str());
  Judged j;
  try {
    j = judge_file(result.path);
  } catch (const Error& e) {
    j.verdict.kind = verdict::Kind::kUnsure;
    j.verdict.sentence = format("Nothing can be told: what there is of the run file cannot be read ({}).", e.text());
  }
  std::string remarks;
  for (const std::string& r : result.remarks) remarks += (remarks.empty() ? "" : "\n") + r;
  j.meta["remarks"] = remarks;
  return j;
}

Judged judge_file(const std::string& path) {
  report::RunContents run = open_run(path);
  return {std::move(run.meta), std::move(run.evidence), std::move(run.verdict), std::move(run.sources)};
}

}  // namespace millpond::cli
