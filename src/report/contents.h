// RunContents: everything a run file says, with the verdict on it: what the page, the exports for other tools and the
// live page are made of. Runs of the engine and watched programs look the same from here on.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runfile/reader.h"
#include "verdict/evidence.h"
#include "verdict/verdict.h"

namespace millpond::report {

struct PlannedProgram {
  runfile::Program program;
  std::vector<runfile::PlanBuffer> buffers;
  std::vector<runfile::PlanCall> calls;
};

struct RunContents {
  std::string name;     // of the file, without folders
  bool engine = false;  // recorded by the engine itself, not by the doctor
  runfile::Meta meta;
  std::vector<runfile::Phase> phases;
  std::vector<runfile::SeriesRow> series;
  std::vector<runfile::OsRow> os;
  std::vector<runfile::TreeRow> tree;       // what each process held: evidence.processes
  std::vector<runfile::SourceRow> sources;  // all that may be shown of the program's source
  std::vector<runfile::ThreadRow> threads;
  std::map<int64_t, runfile::SiteDetailRow> details;  // by row of the site; empty: not recorded, or the run goes on
  std::vector<runfile::SizeRow> sizes;
  std::vector<verdict::Evidence> children;  // of other processes that were seen from inside: sites and marks, the
                                            // largest first, at most kMostChildren
  bool early = false;                       // it goes on, and nothing is said yet
  std::vector<PlannedProgram> programs;
  verdict::Evidence evidence;
  verdict::Verdict verdict;

  std::string text(const char* key) const;  // of meta; empty: not there
  double number(const char* key) const;     // of meta; 0: not there
  /// "train.py --epochs 3", "training cnn_224": what a person calls it, without the interpreter and its path.
  std::string title() const;
  /// Until the last thing that was seen, where the file does not say.
  double seconds() const;
};

constexpr size_t kMostChildren = 8;

/// Reads and judges. A run of the engine knows its memory exactly, so two epochs are enough to call it flat; its
/// sentence names the plan.
RunContents read_contents(const runfile::Reader& file, std::string name);

/// Of a run that goes on and has hardly begun nothing is said yet.
void answer_early(RunContents& run);
/// Of a file that was not written to its end: the disk was full, the watcher was killed, or it still runs. What does
/// not grow until then is *unsure*, whoever asks. The engine knows what it takes, also of what comes.
void answer_cut_off(RunContents& run);

/// The most that a process held, in all its spaces of this machine together.
Bytes peak_of(const verdict::SeenProcess& process);

/// What the program held after it ended training: the last resident memory above 0, if any was seen.
Bytes end_rss(const verdict::Evidence& evidence);

}  // namespace millpond::report
