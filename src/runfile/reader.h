// Reader: opens a run file, its own or a stranger's. The file is not trusted: header, version, layout, types, sizes and
// counts are checked, views, triggers and unsafe functions are off, and whatever is wrong ends in an Error that names
// the place, never in a crash or in memory without bound. The file is opened for reading only and no other is opened:
// what a killed program left half written is put right in a copy. Costs: opening reads the whole file once (SQLite's
// own check, about 1 s for each GiB); then only what is asked for.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runfile/rows.h"

namespace millpond::runfile {

/// Beyond these a file is refused: no run that Millpond records comes near them.
struct ReaderLimits {
  Bytes file{int64_t{4} << 30};
  int64_t rows = 2'000'000;  // of one table, where it has no lower limit of its own (tables.h)
  int64_t text = kMostText;
  int64_t programs = 256;
  Bytes names{int64_t{256} << 20};  // of accounts, as often as rows speak of them
};

class Reader {
 public:
  /// Throws Error(kFile) when the file cannot be read, Error(kFormat) when it is damaged, no run file, or newer.
  explicit Reader(const std::string& path, const ReaderLimits& limits = {});
  ~Reader();
  Reader(Reader&&) noexcept;

  Meta meta() const;
  std::vector<std::string> accounts() const;
  std::vector<Phase> phases() const;
  /// In the order they were written. A value that did not change was not written again: it holds until the next row.
  std::vector<SeriesRow> series() const;
  std::vector<OsRow> os_series() const;
  std::vector<Program> programs() const;
  std::vector<PlanBuffer> plan_buffers(RowId program) const;
  std::vector<PlanCall> plan_calls(RowId program) const;

  // Empty in files of version 1.0, and in runs that no doctor watched.
  std::vector<Process> processes() const;
  std::vector<FrameRow> frames() const;  // by id: the first has id 1
  std::vector<SiteRow> sites() const;
  std::vector<MarkRow> marks() const;
  std::vector<SiteStateRow> site_states() const;  // by mark
  std::vector<TreeRow> tree_series() const;
  std::vector<NoteRow> notes() const;
  // Empty in files of version 1.1 too, and where there was no GPU.
  std::vector<GpuRow> gpus() const;
  std::vector<GpuPointRow> gpu_series() const;
  std::vector<PoolRow> pool_series() const;  // by time of writing
  // Empty in files of version 1.
  std::vector<ProcessPointRow> process_series()
      const;  // by time of writing: each process and space has a series of its own
  // Empty in files of version 2.0 too.
  std::vector<ThreadRow> threads() const;
  std::vector<SiteDetailRow> site_details() const;  // by site
  std::vector<SizeRow> sizes() const;
  // Empty in files of version 2.1 too.
  std::vector<ProcessDetailRow> process_details() const;
  std::vector<ProcessMemoryRow> process_memory() const;  // by time of writing
  std::vector<MappingRow> mapping_series() const;        // likewise
  std::vector<SourceRow> sources()
      const;  // all that is shown of a source is here: no reader opens the files that a run file names

  /// Of the file: 1 or 2. Rows of version 1 come out as version 2 has them: no process, the space "host", every process
  /// seen from inside.
  int version() const;
  /// The file that is read: the one that was named, or the copy in which a killed program's last commit was taken back.
  const std::string& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millpond::runfile
