// What the system told of a process by time: its pages by what is behind them, and its mappings by kind.
#pragma once
#include "verdict/division.h"

namespace millpond::verdict {

class ProcessLevels {
 public:
  explicit ProcessLevels(const SeenProcess& process);
  const SeenProcess& process() const { return process_; }

  TimeSeries resident, anonymous, files, shared, private_dirty,
      pss;  // files: resident pages of files, shared memory left out

  /// The same rounds, of this process: it held nothing before it began and after it ended.
  Rounds of(Rounds rounds) const;
  bool ran_at(double t) const { return t >= process_.start && (!process_.end || t <= *process_.end); }

  /// What has no file behind it, stacks left out.
  std::vector<double> own_at(const Rounds& rounds) const;
  /// Shared mappings and memory-mapped files, which are sampled as blocks too: their addresses, and what of them is
  /// resident.
  std::vector<double> mapped_at(const Rounds& rounds) const;
  std::vector<double> mapped_resident_at(const Rounds& rounds) const;
  /// Of shared mappings: pages that were written and no other process has.
  std::vector<double> private_mapped_at(const Rounds& rounds) const;

  void add_stacks(const Rounds& rounds, Division& division) const;
  /// `mapped_too`: of memory-mapped files and of code; otherwise of code alone.
  void add_files(const Rounds& rounds, Division& division, bool mapped_too = true) const;
  void add_shared(const Rounds& rounds, Division& division) const;
  /// Of a process that nothing was seen of from inside: what has no file behind it.
  void add_outside(const Rounds& rounds, Division& division) const;

 private:
  std::vector<double> sum_of_kinds(const Rounds& rounds, std::span<const char* const> kinds,
                                   Bytes Mapped::* what) const;
  double mapped_gain(const Rounds& rounds, const char* kind) const;
  void add_kinds(const Rounds& rounds, const TimeSeries& series,
                 std::span<const std::pair<const char*, const char*>> kinds, AccountPart::Kind part,
                 const char* otherwise, Division& division) const;
  const SeenProcess& process_;
};

/// The rounds of the process whose loop is compared, or looks at it by the clock where there are none; warm-up left
/// out.
Rounds rounds_of(const Periods& periods);
Rounds rounds_of(const ProcessLevels& levels);

/// What was seen from inside a process: in use by holder, line or as the allocators count, and free. `process`: what
/// the system told of it; null: nothing. `with_mapped`: the account has shared mappings and files in it. True: these
/// are among what was added, by holder and line, because their blocks were sampled.
bool add_inside(const Case& c, const Rounds& rounds, const ProcessLevels* process, bool with_mapped,
                Division& division);

}  // namespace millpond::verdict
