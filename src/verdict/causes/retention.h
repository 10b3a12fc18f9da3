// Memory that the program freed and the allocator keeps: what C21, C25 and C26 have in common.
#pragma once
#include "verdict/causes/cause.h"

namespace millpond::verdict {

struct Retention {
  double bytes = 0;
  bool rising = false;  // resident memory goes up by it from period to period
  std::string how;      // a sentence with numbers
};
/// Nothing when what is kept is an ordinary share.
std::optional<Retention> retention(const Case& c);

/// The place that allocates and frees most, as what left the memory behind.
void blame_temporaries(const Case& c, Match& m);

Match retention_match(const Case& c, const Retention& r);

}  // namespace millpond::verdict
