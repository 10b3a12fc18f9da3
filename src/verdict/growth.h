// Whether memory as a whole grows from period to period, and whether that is a leak. No causes here: only numbers.
//
// Three witnesses, each able to veto: what allocators have in use (exact), sampled live bytes by age (cohorts), and
// resident memory before and after gc and trim (probes). Growth that no witness confirms is never called a leak.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "verdict/notes.h"
#include "verdict/periods.h"
#include "verdict/sites.h"

namespace millpond::verdict {

enum class Course {
  kTooShort,  // too few periods to compare
  kFlat,      // no growth worth naming
  kLeak,      // rises, is still referenced, does not stop
  kFreed,     // rises, but gc or the allocator gives it back
  kStopped,   // rose, and stopped by itself
  kUnproven   // rises, and no witness says what it is
};

struct Growth {
  Course course = Course::kFlat;
  Slope slope;  // bytes for one of x: the headline
  std::string measure = "resident memory";
  double total = 0;                  // slope times length after warm-up
  double small = 5e6, solid = 18e6;  // less is not worth naming; less needs a named holder

  Trend rss;       // dips that a probe made are filled up to the level before it
  Trend segments;  // between probes only
  Trend live, sampled, tree;
  bool has_live = false, has_sampled = false;
  bool by_tree = false;  // the growth is in the children
  bool wanders = false;  // resident memory comes and goes by itself from period to period

  Series floors;  // after gc and trim
  double floor_slope = 0;
  double level = 0;         // resident memory of the last third
  double baseline = 0;      // when the first phase began, or at the first mark
  double range = 0;         // highest period less the least of periods and baseline
  double returned = 0;      // the most a probe gave back
  double usually = 0;       // the median of what probes gave back
  double returned_by_all = 0;
  double returned_rss = 0;  // resident memory before that probe
  double by_gc = 0;         // of that, by gc alone
  double collected = 0;     // objects, by all probes
  double piled = 0, piled_bytes = 0;  // objects in circles that the last probe counted, where the program turned gc off
  std::optional<double> weighed;  // what the user's container that explains the rise was seen to gain, for one of x
  bool bounded = false;     // what rises is a container with a limit of its own, or a buffer that doubles
  bool garbage = false;     // what rises is cyclic garbage: in use until gc runs

  std::vector<std::string> proofs, vetoes;  // sentences

  /// How fast a limit comes nearer: resident memory between probes, where it is known to run ahead of the headline.
  Slope ahead() const {
    return segments.rises() && !segments.slope.vague() && segments.slope.value > slope.value ? segments.slope : slope;
  }
};

Growth find_growth(const Evidence& evidence, const Notes& notes, const Periods& periods, const LiveSites& sites);

/// A counter of the agent at the periods; empty when it was never reported.
Series counter(const Evidence& evidence, const Periods& periods, const std::string& name);

/// "3.2 MiB": a double as Bytes.
std::string amount(double bytes);

}  // namespace millpond::verdict
