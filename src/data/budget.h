// divide: one byte budget among the stages of a pipeline, before anything runs. Pure: numbers in, ceilings out.
//
//   budget = working memory of all stages        (the element each works on, the one the consumer has in hand)
//          + ceilings of those that hold elements (shuffle, cache, prefetch, parallel map, interleave)
//
// One that names its bytes gets them; the others share what is left evenly. Where too much was named, it is cut in
// proportion. Nobody gets less than one element; where that does not fit, the pipeline is refused. The same numbers
// give the same ceilings: what a shuffle holds decides its order.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "millpond/bytes.h"

namespace millpond::data {

struct Claim {
  std::string stage;
  Bytes working;       // always, as far as it is known
  bool holds = false;  // elements, up to a ceiling
  Bytes least;         // of one element that it holds; 0: not known
  Bytes ask;           // at most; 0: whatever it gets
};

/// A ceiling for each claim (0 for those that hold nothing). Throws Error(kMemory) with the table. `sure`: every size
/// is known; otherwise a quarter is kept for what the stages will turn out to work with.
std::vector<Bytes> divide(Bytes budget, std::span<const Claim> claims, bool sure);

}  // namespace millpond::data
