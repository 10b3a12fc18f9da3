// Growth that lies in the processes that a program starts.
#include "base/format.h"
#include "verdict/causes/cause.h"
#include "verdict/causes/words.h"

namespace millpond::verdict {
namespace {

std::optional<Match> worker_processes(const Case& c) {
  Series processes;
  for (size_t i = 0; i < c.periods.marks.size(); ++i) {
    processes.x.push_back(c.periods.x[i]);
    processes.y.push_back(c.periods.marks[i]->processes);
  }
  processes = processes.since(c.periods.warm);
  if (!c.leaking() || !course(processes.x, processes.y, 1).rises()) return {};
  Match m{.share = kTable.by_count};
  for (const char* what : {"dataloader", "fit", "dataset"})
    if (const CountedLine* line = c.notes.line(what); line && !m.blame) m.blame = line->place;
  m.evidence.push_back(
      format("the number of processes rose from {:.0f} to {:.0f}", processes.y.front(), processes.y.back()));
  return m;
}

std::optional<Match> copy_on_write(const Case& c) {
  if (!c.leaking() || !c.growth.by_tree) return {};
  Match m{.share = kTable.by_count, .weight = kTable.made};
  // The many small objects that were there before the workers came: reading one writes its reference count.
  const SiteGroup* objects = nullptr;
  for (const SiteGroup& s : c.sites.groups)
    if (s.user && s.block() < kTable.object && !c.imports(s) && s.bytes > kTable.part * c.growth.total &&
        (!objects || s.bytes > objects->bytes))
      objects = &s;
  if (objects) m.blame = c.with_text(objects->place);
  for (const char* what : {"dataloader", "fit"})
    if (const CountedLine* line = c.notes.line(what); line && !m.blame) m.blame = line->place;
  const int processes = c.periods.marks.back()->processes;
  m.evidence.push_back(
      format("{} processes; resident memory of each hides it, the sum of their private pages shows it", processes));
  return m;
}

}  // namespace

const std::vector<Cause> kProcesses = {
    {.id = "C18",
     .title = "Worker processes are started and not ended",
     .fix = "Make the pool or loader once, before the loop, and close it at the end; with Keras give the PyDataset "
            "`use_multiprocessing=False`, or use tf.data.",
     .threads = {"tensorflow#37026", "tensorflow#30801", "keras#8946"},
     .detect = worker_processes},
    {.id = "C24",
     .title = "Worker processes copy the pages of Python objects by touching their reference counts",
     .fix = "Hold the data in one NumPy array, tensor or Arrow table (or shared memory) instead of a list or dict of "
            "Python objects.",
     .threads = {"pytorch#13246", "pytorch#20433"},
     .detect = copy_on_write}};

}  // namespace millpond::verdict
