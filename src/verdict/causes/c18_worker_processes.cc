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
  if (!c.leaking() || processes.size() < 4 || processes.y.back() - processes.y.front() < 3 ||
      !processes.trend().rises())
    return {};
  Match m{.share = 0.9, .weight = 1};
  for (const char* what : {"dataloader", "fit", "dataset"})
    if (const CountedLine* line = c.notes.line(what); line && !m.blame) m.blame = line->place;
  m.evidence.push_back(
      format("the number of processes rose from {:.0f} to {:.0f}", processes.y.front(), processes.y.back()));
  return m;
}

}  // namespace

const Cause c18_worker_processes = {
    .id = "C18",
    .title = "Worker processes are started and not ended",
    .explanation = "A pool or loader that is made in every round starts workers, and the old ones stay.",
    .fix =
        "Make the pool or loader once, before the loop, and close it at the end; with Keras give the PyDataset `use_multiprocessing=False`, or use "
        "tf.data.",
    .threads = {"tensorflow#37026", "tensorflow#30801", "keras#8946"},
    .detect = worker_processes};

}  // namespace millpond::verdict
