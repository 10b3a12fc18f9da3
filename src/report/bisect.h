// bisect: which change to a program takes its growth away, told in one sentence and a table. Pure: the runs are handed
// in.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/doctor.h"

namespace millpond::report {

/// What a run of a few periods says of growth.
struct GrowthSeen {
  double bytes = 0;         // for one period, as it goes on at the end
  verdict::Interval range;  // 90 %
  double total = 0;         // over the periods after warm-up, or until it stopped
  double level = 0;         // resident memory at the end
  std::string unit;         // "epoch"
  int periods = 0;
  bool enough = false;  // to say anything
  bool goes_on = true;  // false: it was taken in a step or two, or died away
};
GrowthSeen growth_seen(const verdict::Evidence& evidence);

struct VariantRun {
  std::string name;       // "callbacks"; empty: the program as it is
  std::string done;       // "without the program's own callbacks"
  std::string owner;      // who owns the growth if this takes it away: "the program's own callbacks"
  std::string next;       // what to do then
  std::string not_run;    // why it was left out
  std::string no_answer;  // why its run says nothing
  GrowthSeen growth;
  verdict::Kind kind = verdict::Kind::kFlat;
  double seconds = 0;
};

enum class Effect { kNone, kLowers, kRemoves };
/// Less than a quarter is gone, less than 60 % is lower: a handful of periods cannot tell finer.
Effect effect_of(const VariantRun& base, const VariantRun& variant);
/// Grows by more than noise over a few periods: the whole range of its slope is above zero, it goes on, and it is more
/// than 1 MB and 0.3 % of resident memory.
bool grows(const VariantRun& run);

struct Bisection {
  VariantRun base;
  std::vector<VariantRun> variants;
  std::string line;  // that the program as it is was blamed for: "train.py:41 in f"; empty: none
  /// The first variant that takes the growth away, or null.
  const VariantRun* culprit() const;
};

std::string bisect_sentence(const Bisection& b);
std::string bisect_text(const Bisection& b, const TextStyle& style);
nlohmann::ordered_json bisect_json(const Bisection& b);

}  // namespace millpond::report
