// The rhythm of a run: the moments that are compared with one another, and what every account held at each.
//
// A series is a kind of mark and a name. One is chosen: the one the agent followed, otherwise the coarsest that the
// program itself has and that came often enough. The first quarter is warm-up and is left out of every slope.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "verdict/evidence.h"
#include "verdict/statistics.h"
#include "verdict/table.h"

namespace millpond::verdict {

/// One account over the periods. Where it was not measured there is no point.
struct Series {
  std::vector<double> x, y;
  bool empty() const { return y.empty(); }
  size_t size() const { return y.size(); }
  /// From the first x that is at least `from`.
  Series since(double from) const;
};

struct Periods {
  std::string kind, name;          // of the marks; empty: none recur
  Unit unit = Unit::kRun;          // that a reader would call them
  std::vector<const Mark*> marks;  // in order
  double warm = 0;                 // x of the first period after warm-up; x counts rounds, or seconds for a timer
  std::vector<double> x;
  double seconds = 0;  // of one unit of x, as a median
  size_t size() const { return marks.size(); }
  bool enough() const { return marks.size() >= kTable.rounds; }
  double length() const { return x.empty() ? 0 : x.back() - warm; }  // after warm-up

  Series rss, live, heap_free, arenas,
      tree;  // live: in use by malloc, its large blocks and the program's own mappings, and Python's arenas
  Series counted(Unit unit) const;  // so far, at every mark
  /// How many of a unit for one of x, after warm-up.
  double rate(Unit unit) const;
  /// Where a moment lies: x of the last mark not after it; or between the marks around it, by time.
  double at(double t) const;
  double between(double t) const;
};

/// `lead`: the kind that the agent followed, or empty.
Periods find_periods(const Evidence& evidence, const std::string& lead = {});

/// In use by malloc, its large blocks and Python's arenas.
std::optional<Bytes> live_of(const Mark& mark);

/// A probe from before the second period (of steps, while no rounds were seen): what it gave back is the start's.
bool early(const Probe& probe, const Periods& periods);

/// What a probe leaves: resident memory after gc and trim, by x.
Series floors(const Evidence& evidence, const Periods& periods);

}  // namespace millpond::verdict
