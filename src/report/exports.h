// Exports: live bytes, or growth, by call stack, in the forms that other tools read. Bytes out; costs as much memory as
// the result.
//
//   collapsed    "main (train.py:40);fit (train.py:12) 8388608" for each stack: flamegraph.pl, inferno, speedscope
//   speedscope   JSON of https://www.speedscope.app/file-format-schema.json, sampled profiles
//   pprof        profile.proto of github.com/google/pprof, not compressed: every reader takes both
#pragma once
#include <string>
#include <vector>

#include "report/moment.h"

namespace millpond::report {

/// Stacks and what each weighs.
struct Weighed {
  std::string name;  // "alive at the peak, epoch 12"
  struct Stack {
    const verdict::Site* site;
    double bytes = 0, blocks = 0;
  };
  std::vector<Stack> stacks;  // more than nothing each, most bytes first
};
Weighed live_stacks(const verdict::Evidence& evidence, const Moment& moment);
/// What each stack gained from the end of warm-up to the last period; without periods from the first snapshot to the
/// last. What shrank is not in it.
Weighed grown_stacks(const verdict::Evidence& evidence);

std::string collapsed(const Weighed& stacks);
std::string speedscope(const std::vector<Weighed>& profiles, const std::string& name);
/// `growth`: of the value that is shown first; otherwise bytes in use. Allocated bytes and blocks of the whole run are
/// there too.
std::string pprof(const Weighed& stacks, bool growth, double seconds);

}  // namespace millpond::report
