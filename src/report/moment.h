// A moment of a run whose live blocks are known, and the places that hold them. What table, tree, lines, comparison and
// exports begin with.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "verdict/evidence.h"
#include "verdict/verdict.h"

namespace millpond::report {

struct Moment {
  const verdict::Mark* mark;  // of the evidence; has sites
  std::string text;           // "at the peak, epoch 12 (412 MiB resident)"
};

/// `at`: "peak", "end", KIND:INDEX ("epoch:7") or seconds ("12.5s"); the nearest that was kept. Throws Error(kUsage)
/// with what there is.
Moment find_moment(const verdict::Evidence& evidence, const std::string& at);
/// Nothing when no snapshot was taken.
std::optional<Moment> peak_moment(const verdict::Evidence& evidence);
std::optional<Moment> end_moment(const verdict::Evidence& evidence);

/// The last round of the program's own whose memory is known, or null. As it ends a program gives much back: what it
/// held there tells more than its last moment.
const verdict::Mark* last_round(const verdict::Evidence& evidence);

/// A place of the user's code (native too) and all that was allocated under it; for stacks without one the first
/// function with a name.
struct PlaceBytes {
  verdict::Place place{};
  bool user = false;
  std::string through{};               // the innermost function of its largest stack, where that is another
  Bytes bytes{};                       // alive at the moment
  double error = 0;                    // of bytes, 95 %: they are sampled; 0 where all blocks were taken
  double blocks = 0, share = 0;        // share of all that was sampled then
  std::optional<double> per_period{};  // by which it grows after warm-up
  Bytes allocated{}, freed{};          // in the whole run
};

struct Places {
  std::vector<PlaceBytes> rows;  // most bytes first
  Bytes sum;
  std::string unit;  // of per_period: "epoch"; empty: no periods
};
Places places_at(const verdict::Evidence& evidence, const verdict::Mark& mark);

/// Whether a function has a name that tells something: of library code without symbols only the place in it is known
/// ("+0x1af898"), and the wrappers of our own agent are no part of the program.
bool has_name(const verdict::Frame& frame);

}  // namespace millpond::report
