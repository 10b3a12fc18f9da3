// watch: runs a program under watch and records what it sees in a run file. The collector is a process of its own, so it outlives the program
// whatever kills it, and the report is whole up to the last moment.
//
//   every 50 ms   resident memory of the program (statm); records out of its ring
//   every second  (of the first ten four times) the tree of its processes, and what each of them holds; at marks with children also Private_Dirty and PSS; totals of GPUs where there are any
//   a timer mark  four times a second while the program itself marks nothing: what is alive, read from the probe's table
//
// Bounds of the file (design): at most 512 marks of a kind (then every second one goes), 300 sites a mark and 200,000 in all, 4,000 points of resident memory, and of GPUs.
// Memory: some MiB, whatever the length of the run.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "watch/patient.h"

namespace millpond::watch {

/// What a person sees while it runs.
struct Progress {
  double seconds = 0;
  Bytes rss, peak;
  std::string mark;                        // "epoch 7"
  std::optional<double> bytes_per_period;  // growth of resident memory over the last periods
  Pid program{};                           // that was started or attached to
};

struct Options {
  Start start;
  std::optional<Pid> attach;  // instead of start
  /// With attach: how the probe comes into the process once everything is ready for its records, and leaves it when the
  /// watching ends before the process does. Each returns what is wrong, in a sentence without its full stop. Without
  /// them the process is seen from outside only.
  std::function<std::optional<std::string>(const std::string& folder)> enter;
  std::function<std::optional<std::string>()> leave;
  int until = -1;   // with attach: a descriptor; the watching ends when it can be read, because the process says so or
                    // nobody is there any more
  std::string out;  // the run file; empty: a name of its own in this folder, never one that exists
  bool force = false;
  std::optional<Bytes> limit;
  bool arguments = true;                      // command lines are stored; otherwise the names of programs alone
  bool source = true;                         // the user's functions that are seen are stored (watch/sources.h)
  std::optional<double> stop_after;           // seconds; the program goes on
  std::function<void(const Progress&)> tell;  // about once a second; may be empty
  std::function<void(const std::string& path)> opened;  // the run file is there; may be empty
};

struct Result {
  std::string path;  // of the run file
  Ending ending;
  bool left_running = false;
  std::vector<std::string> remarks;  // what could not be seen, and why
  std::string incomplete;  // why the run file ends before the program did (a full disk); empty: it does not. The
                           // remarks are not in the file then
};

Result watch(const Options& options);

/// run.pond, run-2.pond, ...: the first that is not there in this folder.
std::string free_name();

}  // namespace millpond::watch
