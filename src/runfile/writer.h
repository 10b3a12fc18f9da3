// Writer: records a run in a file of its own, for the report and for anyone's SQLite tools.
//
// What is promised: from the moment the writer exists the file is a valid run file, and everything before the last
// commit() that returned is in it, whatever happens to the program afterwards: kill -9, out of memory. finish() makes
// it last through a power failure too; with `sync` every commit does, which costs some milliseconds each (30 on a slow
// disk). Costs: about 200 KiB of memory whatever the length of the run, plus 24 bytes and the name of each account;
// 0.06 ms for a commit. Values that say nothing new are not written, so a run whose memory is flat adds about 100 bytes
// an epoch.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "runfile/rows.h"

namespace millpond::runfile {

struct WriterOptions {
  bool force = false;  // replace a file that is there
  bool sync = false;   // every commit waits for the disk
};

/// For one thread at a time.
class Writer {
 public:
  /// `meta` says what ran and where: program, version, model, started (host_facts() has the machine). It must hold no
  /// private paths. Throws Error(kFile) when the file exists, or cannot be made.
  Writer(const std::string& path, const Meta& meta, const WriterOptions& options = {});
  ~Writer();  // commits what is complete; a failure then is lost, so call finish()
  Writer(Writer&&) noexcept;

  RowId begin_phase(const std::string& kind, const std::string& name, int64_t index, RowId parent, double t);
  void end_phase(RowId phase, double t);
  /// Writes a row for each value that differs from the one written last for that account.
  void add(double t, RowId phase, std::span<const AccountBytes> accounts);
  void add(const OsRow& row);
  RowId add(const Program& program, std::span<const PlanBuffer> buffers, std::span<const PlanCall> calls);
  RowId add(const Process& process);
  /// A process that ended, or of which more is known: everything but its id is written anew.
  void put(const Process& process);
  void add(const ProcessPointRow& row);
  void put(const ProcessDetailRow& details);  // anew, or more of it
  void add(const ProcessMemoryRow& row);
  void add(const MappingRow& row);
  /// A text beyond kMostText, or one with which all would be beyond kMostSource, is not written; false then.
  bool add(const SourceRow& source);
  /// A frame is written once, however many sites have it.
  RowId add(RowId process, std::span<const FrameRow> frames);  // a site
  /// A frame that got its name later.
  void rename(const FrameRow& from, const FrameRow& to);
  void set_totals(RowId site, Bytes total, double blocks, Bytes freed);
  RowId add(const ThreadRow& thread);
  void add(const SiteDetailRow& details);  // once for a site
  void add(const SizeRow& sizes);
  RowId add(const MarkRow& mark, std::span<const SiteStateRow> states);
  /// Forgets a mark and its states: how a long run stays small.
  void remove_mark(RowId mark);
  void add(const TreeRow& row);
  /// A device anew, or with other peaks.
  void put(const GpuRow& gpu);
  void add(const GpuPointRow& row);
  void add(const PoolRow& row);
  /// Every second row goes (of each device); returns how many are left.
  int64_t thin_os_series();
  int64_t thin_tree_series();
  int64_t thin_gpu_series();
  int64_t thin_process_series();  // of each process and space
  int64_t thin_process_memory();
  int64_t thin_mapping_series();
  int64_t thin_pool_series();  // of each process, space and pool
  /// A text beyond kMostText is not written; false then.
  bool add(const NoteRow& note);

  void set_meta(const std::string& key, const std::string& value);

  /// At the end of an epoch: from here on nothing written so far can be lost.
  void commit();
  /// Writes the meta keys "seconds" and "status" ("ended", "interrupted", "failed") and commits. A file without them is
  /// of a run that was killed, or goes on.
  void finish(double t, const std::string& status);

  Bytes memory() const;  // of SQLite for this file
  const std::string& path() const;

 private:
  int64_t thin(const char* table, const char* within = "");
  struct State;
  std::unique_ptr<State> state_;
};

/// cpu, cores, memory, kernel, page size: of this machine, without its name and without paths.
Meta host_facts();
/// "2026-11-15T09:30:00Z", for `started`.
std::string time_now();

}  // namespace millpond::runfile
