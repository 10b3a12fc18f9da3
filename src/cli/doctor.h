// What the doctor's commands share: options of a watched run, and how its result is told.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/report.h"
#include "report/doctor.h"
#include "runfile/reader.h"
#include "watch/collector.h"

namespace CLI {
class App;
}

namespace millpond::cli {

/// Options that every command which starts a program has: -o, --force, --limit, --native, --no-probes, ...
struct WatchOptions {
  std::string out, limit;
  bool force = false, no_probes = false, native = false, no_follow = false, quiet = false, live = false, inside = false,
       verbose = false;
  bool no_source = false, no_arguments = false;
  int pid = 0;
  double seconds = 0;
  JsonTarget json;
};
void add_watch_options(CLI::App& sub, WatchOptions& o);

/// What follows the options, with or without "--". Throws Error(kUsage) when nothing does, unless that is `allowed`.
std::vector<std::string> program_of(const CLI::App& sub, const Invocation& chosen, bool allowed);

/// How a program is started with our probe and agent in it. Throws Error(kFile) when those are not where they were
/// installed.
watch::Start start_of(const std::vector<std::string>& command);

/// For a process that watches itself (python/millpond/_inside.py), over the socket that is our standard input, one JSON
/// object on each line: says
/// {"folder", "file"} when everything is ready for its records, watches until the process says a word or closes, and
/// then says {"file", "remarks"}; or {"error"}.
int watch_from_inside(const WatchOptions& o);

/// Runs the program under watch, with news of it where that harms nothing (cli/news.h). `command` is empty with --pid.
watch::Result watch_program(const WatchOptions& o, const std::vector<std::string>& command);

struct Judged {
  runfile::Meta meta;
  verdict::Evidence evidence;
  verdict::Verdict verdict;
  std::vector<runfile::SourceRow> sources;
};
Judged judge_file(const std::string& path);
/// The same of a run that has just ended. Where its file could not be written to the end (a full disk), standard error
/// and the answer say so, and nothing is told as flat.
Judged judge_result(const watch::Result& result);

/// Colours where a terminal reads and NO_COLOR is not set.
report::TextStyle text_style(int fd, bool verbose = false);

/// Where the run file is, and how to see more of it: the last line of an answer.
std::string file_line(const std::string& path, const report::TextStyle& style, bool live = false);

}  // namespace millpond::cli
