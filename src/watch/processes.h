// Processes: which processes the watched tree has had. Each has a row in the run file, from when it was first seen
// until it was gone, and a series of what it held of each memory space, and of what its pages were.
//
// Bounds: 2,048 processes have a row, 64 that live at the same time a series of their own (the others are summed in one
// without a process), and all series together 16,000 points (then every second one goes). Costs about 60 us for each
// process and look.
#pragma once
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runfile/writer.h"
#include "watch/gpu.h"
#include "watch/tree.h"

namespace millpond::watch {

class Processes {
 public:
  /// `arguments`: command lines are stored whole; otherwise only the name of each program is.
  Processes(runfile::Writer& writer, bool arguments) : writer_(writer), arguments_(arguments) {}

  /// The process that was started, or that is watched from now on.
  void root(Pid pid, double t);
  /// The probe is in this process: its row. After an exec another program lies in the same process, and that has a row
  /// of its own.
  runfile::RowId inside(Pid pid, Pid parent, double since, bool forked = false, Bytes inherited = {});
  /// What a process says of itself: how it began, and what multiprocessing calls it.
  void told(runfile::RowId process, runfile::How how, const std::string& label);
  /// What the system says of the tree now; `memory` is of the same processes.
  void look(double t, const std::vector<TreeProcess>& tree, const TreeMemory& memory, const std::vector<Gpu>& gpus);
  /// What the allocator of a process had handed out a moment ago, and of that what it took itself since it began.
  void in_use(runfile::RowId process, Bytes bytes);
  void alive(runfile::RowId process, Bytes bytes);
  /// Detailed memory of the tree that was read at another moment, for a mark.
  void memory(double t, const TreeMemory& memory);
  /// Whether it has a series of its own.
  bool has_series(Pid pid) const;
  /// A process said itself when it ended.
  void ended(runfile::RowId process, double t);
  /// `over`: the watched program has ended, and whatever is left of its tree is no longer looked at.
  void finish(double t, bool over);

  /// Of the process that has this pid now; none: it was never seen.
  runfile::RowId row_of(Pid pid) const;
  int64_t left_out() const { return int64_t(left_out_.size()); }  // processes without a row

 private:
  struct One {
    runfile::Process row;
    uint64_t born = 0;  // as the system counts it: tells a process from a later one with its pid
    bool series = false, has_shared = false, gone = false;
    std::optional<Bytes> in_use, alive;
    runfile::ProcessDetailRow details{};
  };
  One* find(Pid pid);
  One& add(Pid pid, Pid parent, uint64_t born, std::string name, double t, runfile::Seen seen);
  void end(One& one, double t);
  void point(const runfile::ProcessPointRow& row);
  One* of(runfile::RowId process);

  runfile::Writer& writer_;
  bool arguments_;
  std::list<One> all_;
  std::map<int, One*> now_;                      // by pid
  std::set<std::pair<int, uint64_t>> left_out_;  // pid and born
  int64_t points_ = 0, looks_ = 0, stride_ = 1, memory_points_ = 0, memory_looks_ = 0, memory_stride_ = 1;
  bool other_shared_ = false;
};

/// Text of a stranger, fit for a database: what is no UTF-8, or a control character, becomes '?'.
std::string clean(std::string_view s);

}  // namespace millpond::watch
