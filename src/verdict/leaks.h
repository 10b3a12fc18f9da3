// Each of several leaks with its own rate: what walks found to hold survivors of every age, and lines whose blocks stay
// though nothing of Python was seen to hold them.
//
// Sampled bytes are off by chance, what allocators count in all is not: so each leak is moved by as much as chance may
// have put it off, until all that was sampled adds up to what was counted.
#pragma once
#include <optional>
#include <vector>

#include "verdict/course.h"
#include "verdict/notes.h"
#include "verdict/periods.h"
#include "verdict/sites.h"

namespace millpond::verdict {

struct Leak {
  const Holder* holder = nullptr;   // the one of most bytes, where several are filled by one line; null: none was seen
  const SiteGroup* line = nullptr;  // that allocates most of it; null: it was not sampled
  const Container* container = nullptr;  // the same, as the agent saw it grow
  std::optional<Place> blame;            // the line that puts it there, otherwise the one that allocates it
  double rate = 0, off = 0;              // bytes of a round; half of the 95 % interval
  double bytes = 0;                      // of it, since `since`
  double since = 0;                      // the round in which it began
  bool proven = false;  // its lines were seen to keep about as much in all parts of the time since then
  bool mapped = false;  // in shared mappings or mapped files, which no allocator counts
};

/// All that keep at least kTable.told, most bytes first.
std::vector<Leak> find_leaks(const Evidence& evidence, const Notes& notes, const Periods& periods,
                             const LiveSites& sites);

}  // namespace millpond::verdict
