#include "verdict/files.h"

#include <algorithm>

#include "base/format.h"
#include "verdict/causes/words.h"
#include "verdict/course.h"
#include "verdict/growth.h"
#include "verdict/notes.h"
#include "verdict/numbers.h"
#include "verdict/sentence.h"

namespace millpond::verdict {

void add_files(const Evidence& e, Verdict& v) {
  std::vector<double> t, bytes;
  // What is mapped too is counted with the process that has it mapped.
  for (const auto& [at, held] : e.loose_files) t.push_back(at), bytes.push_back(double(held.value));
  const Course c = course(t, bytes, kTable.grain);
  if (c.move != Move::kGrows || c.total < kTable.small) return;
  const Periods periods = find_periods(e, read_notes(e).lead);
  const bool rounds = periods.enough() && periods.seconds > 0 && periods.unit != Unit::kSecond;
  const double seconds = rounds ? periods.seconds : 1;
  Finding f;
  f.kind = Kind::kLeak;
  f.space = "shared";
  f.unit = rounds ? periods.unit : Unit::kSecond;
  f.holder = e.growing_file.empty() ? "files in /dev/shm" : e.growing_file;
  f.title =
      format("A file in shared memory grows: {}. It takes memory until it is removed, whoever has it open", f.holder);
  f.fix = format(
      "Remove {} when it is no longer needed (or truncate it), or write it to a disk: what lies in /dev/shm lies in "
      "memory.",
      f.holder);
  f.bytes_per_unit = c.slope.value * seconds;
  f.bytes_per_unit_range = {c.slope.range.low * seconds, c.slope.range.high * seconds};
  f.units_seen = (c.last - c.onset) / seconds;
  f.total = to_bytes(c.total);
  f.process = e.process;
  f.evidence.push_back(
      format("files in /dev/shm that were made during the run, and that the program had open and not mapped, rose by "
             "{} in {:.0f} s",
             amount(c.total), c.last - c.onset));
  const std::string sentence = format("Memory grows by {} {}: {}.", amount(f.bytes_per_unit), each(f), f.title);
  add_leaks({std::move(f)}, sentence, v);
}

}  // namespace millpond::verdict
