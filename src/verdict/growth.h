// Whether memory grows from round to round, and what that is. No causes here and no names.
//
// growth.cc measures: levels of memory, and what gc and trim gave back. decide.cc asks three questions of the growth
// account and answers with an outcome:
//   1  does it still grow at the end?
//   2  what of it is referenced, by whom, and is that holder bounded?
//   3  what do gc and trim give back?
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "verdict/course.h"
#include "verdict/periods.h"

namespace millpond::verdict {

struct Case;

enum class Outcome {
  kTooShort,  // too few rounds to compare
  kFlat,      // no growth worth naming
  kLeak,      // what is in use rises until the end, and nothing bounds it
  kFreed,     // rises, but gc or the allocator could give it back
  kStopped,   // rose, and stopped by itself or will
  kUnproven   // rises, and nothing says what it is
};

struct Growth {
  Outcome outcome = Outcome::kFlat;
  bool little = false;  // what is in use grows as a leak does, and by too little to set the verdict; slope and total
                        // are its own then
  Slope slope;          // bytes for one of x: the headline
  std::string measure = "resident memory";
  double total = 0;             // of what rises at the end
  double small = kTable.small;  // less is listed and does not set the verdict

  Course held;  // what is in use, by the best that was measured: allocators' own count, otherwise sampled blocks
  Course rss;   // dips that a probe made are filled up to the level before it
  Course sampled, tree;
  bool has_live = false, has_sampled = false;
  bool by_tree = false;  // the growth is in the children

  double level = 0;                   // resident memory of the last third
  double baseline = 0;                // when the first phase began, or at the first mark
  double range = 0;                   // highest period less the least of periods and baseline
  double returned = 0;                // the most a probe gave back
  double usually = 0;                 // the median of what probes gave back
  double returned_rss = 0;            // resident memory before that probe
  double by_gc = 0;                   // of that, by gc alone
  double collected = 0;               // objects, by all probes
  double piled = 0, piled_bytes = 0;  // objects in circles that the last probe counted, where the program turned gc off
  double freed = 0;                   // of what was gained in use from probe to probe: what gc must have freed
  bool garbage = false;               // what rises is cyclic garbage: in use until gc runs
  bool refills = false;               // what probes took of resident memory comes back slowly, round by round
  bool wanders = false;               // resident memory comes and goes by itself from period to period

  std::vector<std::string> proofs;  // sentences

  Slope between;  // of resident memory between probes

  /// How fast a limit comes nearer: resident memory, where it runs ahead of the headline.
  const Slope& ahead() const {
    return between.range.low > 0 && !between.vague() && between.value > slope.value ? between : slope;
  }
};

/// What was measured; then the decision, which needs leaks and account of the case too.
Growth measure_growth(const Evidence& evidence, const Periods& periods, const Series& sampled);
void decide(const Case& c, Growth& growth);

/// A counter of the agent at the periods; empty when it was never reported.
Series counter(const Evidence& evidence, const Periods& periods, const std::string& name);

/// "3.2 MiB": a double as Bytes.
std::string amount(double bytes);

}  // namespace millpond::verdict
